//! Asks a primary key for the fate of a transaction, and decides it where the transaction was abandoned. Hands on
//! the fate by which the locks on its other keys are resolved.

use super::{
    Processed, Request, Response, TxnStatus,
    execute::{Execute, size_of},
    latch, validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
    txn::{
        Key, Lock, MvccReader, MvccTxn, TxnCommitRecord,
        rollback::{MissingLock, Protection, rollback_lock, rollback_missing_lock},
        timestamp,
    },
};

/// The fate of a transaction, as its primary key knows it.
///
/// An expired lock is rolled back. A living one gets a `min_commit_ts` above the caller's timestamp, so that the
/// caller may read past the transaction's locks. The answer is meaningful for a transaction that has a lock
/// somewhere, or started above the GC safe point; the records of others may be collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckTxnStatus {
    /// The primary key that the transaction's locks name.
    pub primary: Vec<u8>,
    /// Start timestamp of the transaction.
    pub lock_ts: u64,
    /// Read timestamp of the caller; zero if it does not want to read.
    pub caller_start_ts: u64,
    /// The present, by which the lock is judged to have expired; zero if it must not be.
    pub current_ts: u64,
    /// Roll the transaction back where there is no trace of it, instead of the error [`Error::TxnNotFound`]. A client
    /// that prewrites in several commands may not have reached its primary key yet, so whoever wants to let it live
    /// sets this only once the lock that led here has expired.
    pub rollback_if_not_exist: bool,
}

impl Request for CheckTxnStatus {
    type Output = TxnStatus;

    fn output(response: Response) -> Option<TxnStatus> {
        match response {
            Response::TxnStatus(status) => Some(status),
            _ => None,
        }
    }
}

impl Execute for CheckTxnStatus {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("primary", &self.primary, config)?;
        validate::timestamp("lock_ts", self.lock_ts)?;
        validate::timestamp_or_none("caller_start_ts", self.caller_start_ts)?;
        validate::timestamp_or_none("current_ts", self.current_ts)
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
        let mut reader = MvccReader::for_key(snapshot, &key);
        let mut txn = MvccTxn::new(self.lock_ts);
        let status = match reader.load_lock(&key)? {
            Some(lock) if lock.start_ts == self.lock_ts => self.locked(&mut txn, &mut reader, key, lock)?,
            _ => self.missing(&mut txn, &mut reader, &key)?,
        };
        Ok(Processed { modifies: txn.into_modifies(), response: Response::TxnStatus(status) })
    }
}

impl CheckTxnStatus {
    fn locked(
        &self,
        txn: &mut MvccTxn,
        reader: &mut MvccReader<'_>,
        key: Key,
        mut lock: Lock,
    ) -> Result<TxnStatus, Error> {
        if lock.primary != self.primary {
            return Err(Error::PrimaryMismatch { primary: lock.primary });
        }
        if timestamp::is_expired(lock.start_ts, lock.ttl_ms, self.current_ts) {
            rollback_lock(txn, reader, key, &lock, Protection::Protected)?;
            return Ok(TxnStatus::TtlExpire);
        }
        if self.caller_start_ts >= lock.min_commit_ts {
            // The present is at or above whatever the next callers read at, so they need not push again.
            lock.min_commit_ts = self.caller_start_ts.saturating_add(1).max(self.current_ts);
            txn.put_lock(key.clone(), &lock);
        }
        let min_commit_ts_pushed = self.caller_start_ts != 0 && lock.min_commit_ts > self.caller_start_ts;
        Ok(TxnStatus::Uncommitted { lock: lock.into_info(&key)?, min_commit_ts_pushed })
    }

    fn missing(&self, txn: &mut MvccTxn, reader: &mut MvccReader<'_>, key: &Key) -> Result<TxnStatus, Error> {
        if !self.rollback_if_not_exist
            && let TxnCommitRecord::None { .. } = reader.get_txn_commit_record(key, self.lock_ts)?
        {
            return Err(Error::TxnNotFound { start_ts: self.lock_ts, key: self.primary.clone() });
        }
        Ok(match rollback_missing_lock(txn, reader, key, Protection::Protected)? {
            MissingLock::Committed { commit_ts } => TxnStatus::Committed { commit_ts },
            MissingLock::RolledBack => TxnStatus::RolledBack,
            MissingLock::LockNotExist => TxnStatus::LockNotExist,
        })
    }
}
