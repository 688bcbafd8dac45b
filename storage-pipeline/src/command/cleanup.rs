//! Rolls a transaction back on one key, if its lock has expired: what others do whom the lock stopped.

use super::{
    Processed, Request, Response,
    execute::{Execute, size_of},
    latch, validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
    txn::{
        Key, MvccReader, MvccTxn,
        rollback::{Protection, cleanup_key},
    },
};

/// Rolls a transaction back on one key, usually its primary.
///
/// Repeating it changes nothing. [`Error::KeyIsLocked`] says that the lock still lives, [`Error::Committed`] that the
/// transaction is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleanup {
    /// The key.
    pub key: Vec<u8>,
    /// Start timestamp of the transaction.
    pub start_ts: u64,
    /// The present, by which the lock must have expired. Zero rolls back a living lock, too.
    pub current_ts: u64,
}

impl Request for Cleanup {
    type Output = ();

    fn output(response: Response) -> Option<()> {
        matches!(response, Response::Done).then_some(())
    }
}

impl Execute for Cleanup {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("key", &self.key, config)?;
        validate::timestamp("start_ts", self.start_ts)
    }

    fn latches(&self) -> Vec<u64> {
        vec![latch::txn(&self.key)]
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        each(&self.key);
    }

    fn size_bytes(&self) -> usize {
        size_of([self.key.as_slice()])
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        let key = Key::from_raw(&self.key);
        let mut reader = MvccReader::for_key(snapshot, &key);
        let mut txn = MvccTxn::new(self.start_ts);
        // Somebody else decides here, whom the transaction's client knows nothing of: the record has to last.
        cleanup_key(&mut txn, &mut reader, key, self.current_ts, Protection::Protected)?;
        Ok(Processed { modifies: txn.into_modifies(), response: Response::Done })
    }
}
