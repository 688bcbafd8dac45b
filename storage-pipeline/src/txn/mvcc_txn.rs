//! Collects what one transaction changes, in Percolator's terms. Hands on changes of stored keys.

use super::{Key, Lock, LockType, SHORT_VALUE_MAX_BYTES, Write, WriteType};
use crate::engine::{Cf, Modify};

/// The changes of the transaction with one start timestamp.
#[derive(Debug)]
pub(crate) struct MvccTxn {
    pub(crate) start_ts: u64,
    modifies: Vec<Modify>,
}

impl MvccTxn {
    pub(crate) fn new(start_ts: u64) -> Self {
        Self { start_ts, modifies: Vec::new() }
    }

    pub(crate) fn into_modifies(self) -> Vec<Modify> {
        self.modifies
    }

    /// Locks a key for what it is to become. A long value goes to its own column family.
    pub(crate) fn lock_key(&mut self, key: Key, lock: &mut Lock, value: Option<Vec<u8>>) {
        lock.short_value = match value {
            Some(value) if value.len() > SHORT_VALUE_MAX_BYTES => {
                self.modifies.push(Modify::Put(Cf::Default, key.append_ts(self.start_ts), value));
                None
            }
            short => short,
        };
        self.put_lock(key, lock);
    }

    /// Writes a lock as it is.
    pub(crate) fn put_lock(&mut self, key: Key, lock: &Lock) {
        self.modifies.push(Modify::Put(Cf::Lock, key.into_encoded(), lock.encode()));
    }

    pub(crate) fn unlock_key(&mut self, key: Key) {
        self.modifies.push(Modify::Delete(Cf::Lock, key.into_encoded()));
    }

    pub(crate) fn put_write(&mut self, key: &Key, commit_ts: u64, write: &Write) {
        self.modifies.push(Modify::Put(Cf::Write, key.append_ts(commit_ts), write.encode()));
    }

    pub(crate) fn delete_write(&mut self, key: &Key, commit_ts: u64) {
        self.modifies.push(Modify::Delete(Cf::Write, key.append_ts(commit_ts)));
    }

    /// Removes a record and the long value that it stands for.
    pub(crate) fn delete_version(&mut self, key: &Key, commit_ts: u64, write: &Write) {
        self.delete_write(key, commit_ts);
        if write.write_type == WriteType::Put && write.short_value.is_none() {
            self.modifies.push(Modify::Delete(Cf::Default, key.append_ts(write.start_ts)));
        }
    }

    /// Removes the long value that a lock announced, if it did.
    pub(crate) fn delete_value_of(&mut self, key: &Key, lock: &Lock) {
        if lock.lock_type == LockType::Put && lock.short_value.is_none() {
            self.modifies.push(Modify::Delete(Cf::Default, key.append_ts(lock.start_ts)));
        }
    }
}
