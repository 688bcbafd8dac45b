//! Prolongs the life of a transaction, by its primary lock.

use super::{
    Processed, Request, Response,
    execute::{Execute, size_of},
    latch, validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
    txn::{Key, MvccReader, MvccTxn},
};

/// Raises the time to live of a primary lock, and yields what it is now. It never lowers it.
///
/// [`Error::TxnNotFound`] says that the lock is gone: the transaction is settled, or was never prewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnHeartBeat {
    /// The transaction's primary key.
    pub primary: Vec<u8>,
    /// Start timestamp of the transaction.
    pub start_ts: u64,
    /// The time to live it needs, in milliseconds from the physical part of `start_ts`.
    pub advise_ttl_ms: u64,
}

impl Request for TxnHeartBeat {
    type Output = u64;

    fn output(response: Response) -> Option<u64> {
        match response {
            Response::TtlMs(ttl_ms) => Some(ttl_ms),
            _ => None,
        }
    }
}

impl Execute for TxnHeartBeat {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("primary", &self.primary, config)?;
        validate::timestamp("start_ts", self.start_ts)
    }

    fn latches(&self) -> Vec<u64> {
        vec![latch::txn(&self.primary)]
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        each(&self.primary);
    }

    fn size_bytes(&self) -> usize {
        size_of([self.primary.as_slice()])
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        let key = Key::from_raw(&self.primary);
        let reader = MvccReader::for_key(snapshot, &key);
        let mut lock = match reader.load_lock(&key)? {
            Some(lock) if lock.start_ts == self.start_ts => lock,
            _ => return Err(Error::TxnNotFound { start_ts: self.start_ts, key: self.primary }),
        };
        if lock.primary != self.primary {
            return Err(Error::PrimaryMismatch { primary: lock.primary });
        }
        let mut txn = MvccTxn::new(self.start_ts);
        if lock.ttl_ms < self.advise_ttl_ms {
            lock.ttl_ms = self.advise_ttl_ms;
            txn.put_lock(key, &lock);
        }
        Ok(Processed { modifies: txn.into_modifies(), response: Response::TtlMs(lock.ttl_ms) })
    }
}
