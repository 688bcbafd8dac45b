//! The lock record: who holds a key, until when, and what it will become. Hands on its bytes and its fields.

use super::{
    codec::{Fields, VERSION, put_number},
    keys::Key,
};
use crate::error::{Error, LockInfo};

/// What the locked key becomes when the transaction commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LockType {
    /// It gets a value.
    Put = 1,
    /// It loses its value.
    Delete = 2,
    /// It stays as it is; nobody else may change it meanwhile. Such a lock does not block reads.
    Lock = 3,
}

const SHORT_VALUE: u8 = 1;

/// A lock, as the `lock` column family stores it under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// What the key becomes.
    pub lock_type: LockType,
    /// The transaction's primary key, as the user gave it. Its lock decides the fate of all others.
    pub primary: Vec<u8>,
    /// Start timestamp of the transaction.
    pub start_ts: u64,
    /// Time to live in milliseconds, from the physical part of `start_ts`.
    pub ttl_ms: u64,
    /// How many keys the transaction writes.
    pub txn_size: u64,
    /// The least timestamp at which the transaction may commit. Readers below it need not wait.
    pub min_commit_ts: u64,
    /// The value to be, where it is short. A longer one is in the `default` column family already.
    pub short_value: Option<Vec<u8>>,
}

impl Lock {
    /// Its bytes: version, type, flags, the two timestamps, the two numbers, the primary key, the value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let value = self.short_value.as_deref().unwrap_or_default();
        let mut out = Vec::with_capacity(48 + self.primary.len() + value.len());
        let flags = if self.short_value.is_some() { SHORT_VALUE } else { 0 };
        out.extend([VERSION, self.lock_type as u8, flags]);
        out.extend(self.start_ts.to_le_bytes());
        out.extend(self.min_commit_ts.to_le_bytes());
        put_number(&mut out, self.ttl_ms);
        put_number(&mut out, self.txn_size);
        put_number(&mut out, self.primary.len() as u64);
        out.extend_from_slice(&self.primary);
        out.extend_from_slice(value);
        out
    }

    /// The lock that these bytes encode.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new("lock", bytes)?;
        let lock_type = match fields.byte()? {
            1 => LockType::Put,
            2 => LockType::Delete,
            3 => LockType::Lock,
            other => return Err(fields.corrupt(format_args!("has unknown type {other}"))),
        };
        let flags = fields.byte()?;
        if flags & !SHORT_VALUE != 0 {
            return Err(fields.corrupt(format_args!("has unknown flags {flags:#x}")));
        }
        Ok(Self {
            lock_type,
            start_ts: fields.timestamp()?,
            min_commit_ts: fields.timestamp()?,
            ttl_ms: fields.number()?,
            txn_size: fields.number()?,
            primary: fields.bytes()?.to_vec(),
            short_value: fields.short_value(flags & SHORT_VALUE != 0)?,
        })
    }

    /// What a caller is told of the lock on this key.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the key is not an encoded one.
    pub fn into_info(self, key: &Key) -> Result<LockInfo, Error> {
        Ok(LockInfo {
            key: key.to_raw()?,
            primary: self.primary,
            start_ts: self.start_ts,
            ttl_ms: self.ttl_ms,
            txn_size: self.txn_size,
            min_commit_ts: self.min_commit_ts,
        })
    }

    /// The error for somebody whom this lock stops.
    pub(crate) fn blocks(self, key: &Key) -> Error {
        match self.into_info(key) {
            Ok(info) => Error::KeyIsLocked(Box::new(info)),
            Err(corrupt) => corrupt,
        }
    }

    /// Whether a read at `read_ts` has to wait for the transaction's fate, since it may commit at or below that.
    #[must_use]
    pub fn blocks_read(&self, read_ts: u64, bypass_locks: &[u64]) -> bool {
        self.lock_type != LockType::Lock
            && self.start_ts <= read_ts
            && self.min_commit_ts <= read_ts
            && !bypass_locks.contains(&self.start_ts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lock() -> impl Strategy<Value = Lock> {
        let lock_type = prop_oneof![Just(LockType::Put), Just(LockType::Delete), Just(LockType::Lock)];
        let bytes = |most| proptest::collection::vec(any::<u8>(), 0..=most);
        let value = proptest::option::of(bytes(crate::txn::SHORT_VALUE_MAX_BYTES));
        (lock_type, bytes(300), any::<[u64; 4]>(), value).prop_map(
            |(lock_type, primary, numbers, short_value)| {
                let [start_ts, ttl_ms, txn_size, min_commit_ts] = numbers;
                Lock { lock_type, primary, start_ts, ttl_ms, txn_size, min_commit_ts, short_value }
            },
        )
    }

    #[test]
    fn a_read_waits_only_for_what_may_commit_at_or_below_it() {
        let lock = |lock_type, start_ts, min_commit_ts| Lock {
            lock_type,
            primary: vec![],
            start_ts,
            ttl_ms: 0,
            txn_size: 0,
            min_commit_ts,
            short_value: None,
        };
        assert!(lock(LockType::Put, 10, 0).blocks_read(10, &[]));
        assert!(lock(LockType::Delete, 10, 10).blocks_read(10, &[9]));
        assert!(!lock(LockType::Lock, 10, 0).blocks_read(10, &[]));
        assert!(!lock(LockType::Put, 10, 0).blocks_read(9, &[]));
        assert!(!lock(LockType::Put, 10, 12).blocks_read(11, &[]));
        assert!(!lock(LockType::Put, 10, 0).blocks_read(11, &[9, 10]));
    }

    proptest! {
        #[test]
        fn decodes_what_was_encoded(lock in lock()) {
            prop_assert_eq!(Lock::decode(&lock.encode()).unwrap(), lock);
        }

        #[test]
        fn a_spoilt_or_cut_record_never_panics(lock in lock(), at: proptest::sample::Index, with: u8) {
            let mut bytes = lock.encode();
            let at = at.index(bytes.len());
            let _ = Lock::decode(&bytes[..at]);
            bytes[at] = with;
            if let Ok(other) = Lock::decode(&bytes) {
                prop_assert_eq!(other.encode(), bytes);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Lock::decode(&bytes);
            if let [version, kind, flags, ..] = &mut bytes[..] {
                (*version, *kind, *flags) = (VERSION, *kind % 4, *flags % 2);
            }
            let _ = Lock::decode(&bytes);
        }
    }
}
