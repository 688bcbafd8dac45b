//! The write record: what happened to a key at a commit timestamp. Hands on its bytes and its fields.

use super::{
    codec::{Fields, VERSION},
    lock::LockType,
};
use crate::error::Error;

/// What happened to the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WriteType {
    /// It got a value.
    Put = 1,
    /// It lost its value.
    Delete = 2,
    /// Nothing; a transaction that had locked it committed.
    Lock = 3,
    /// Nothing; a transaction was rolled back. The record stands at that transaction's *start* timestamp, so that a
    /// prewrite of it which arrives late is refused.
    Rollback = 4,
}

impl From<LockType> for WriteType {
    fn from(lock_type: LockType) -> Self {
        match lock_type {
            LockType::Put => Self::Put,
            LockType::Delete => Self::Delete,
            LockType::Lock => Self::Lock,
        }
    }
}

const SHORT_VALUE: u8 = 1;
const PROTECTED: u8 = 2;
const OVERLAPPED_ROLLBACK: u8 = 4;

/// A write record, as the `write` column family stores it under its key and commit timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// What happened.
    pub write_type: WriteType,
    /// Start timestamp of the transaction that did it. Its value, if long, is in the `default` column family there.
    pub start_ts: u64,
    /// The value, where it is short.
    pub short_value: Option<Vec<u8>>,
    /// Of a rollback: a later rollback on the key must not remove this record to save room.
    pub protected: bool,
    /// The transaction whose *start* timestamp equals this record's commit timestamp was rolled back on this key.
    /// Its rollback has no record of its own, since this one stands in its place.
    pub has_overlapped_rollback: bool,
}

impl Write {
    /// The record of a commit.
    #[must_use]
    pub fn new(write_type: WriteType, start_ts: u64, short_value: Option<Vec<u8>>) -> Self {
        Self { write_type, start_ts, short_value, protected: false, has_overlapped_rollback: false }
    }

    /// The record of a rollback.
    #[must_use]
    pub fn new_rollback(start_ts: u64, protected: bool) -> Self {
        Self { protected, ..Self::new(WriteType::Rollback, start_ts, None) }
    }

    /// Whether the record, which stands at `commit_ts`, says that the transaction with that start timestamp was
    /// rolled back.
    #[must_use]
    pub fn is_rollback_at_its_place(&self) -> bool {
        self.write_type == WriteType::Rollback || self.has_overlapped_rollback
    }

    /// Its bytes: version, type, flags, start timestamp, value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let value = self.short_value.as_deref().unwrap_or_default();
        let mut flags = 0;
        for (set, flag) in [
            (self.short_value.is_some(), SHORT_VALUE),
            (self.protected, PROTECTED),
            (self.has_overlapped_rollback, OVERLAPPED_ROLLBACK),
        ] {
            flags |= if set { flag } else { 0 };
        }
        let mut out = Vec::with_capacity(11 + value.len());
        out.extend([VERSION, self.write_type as u8, flags]);
        out.extend(self.start_ts.to_le_bytes());
        out.extend_from_slice(value);
        out
    }

    /// The record that these bytes encode.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new("write record", bytes)?;
        let write_type = match fields.byte()? {
            1 => WriteType::Put,
            2 => WriteType::Delete,
            3 => WriteType::Lock,
            4 => WriteType::Rollback,
            other => return Err(fields.corrupt(format_args!("has unknown type {other}"))),
        };
        let flags = fields.byte()?;
        if flags & !(SHORT_VALUE | PROTECTED | OVERLAPPED_ROLLBACK) != 0 {
            return Err(fields.corrupt(format_args!("has unknown flags {flags:#x}")));
        }
        Ok(Self {
            write_type,
            start_ts: fields.timestamp()?,
            short_value: fields.short_value(flags & SHORT_VALUE != 0)?,
            protected: flags & PROTECTED != 0,
            has_overlapped_rollback: flags & OVERLAPPED_ROLLBACK != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write() -> impl Strategy<Value = Write> {
        let write_type = prop_oneof![
            Just(WriteType::Put),
            Just(WriteType::Delete),
            Just(WriteType::Lock),
            Just(WriteType::Rollback)
        ];
        let value = proptest::collection::vec(any::<u8>(), 0..=crate::txn::SHORT_VALUE_MAX_BYTES);
        (write_type, any::<u64>(), proptest::option::of(value), any::<[bool; 2]>()).prop_map(
            |(write_type, start_ts, short_value, [protected, has_overlapped_rollback])| Write {
                protected,
                has_overlapped_rollback,
                ..Write::new(write_type, start_ts, short_value)
            },
        )
    }

    proptest! {
        #[test]
        fn decodes_what_was_encoded(write in write()) {
            prop_assert_eq!(Write::decode(&write.encode()).unwrap(), write);
        }

        #[test]
        fn a_spoilt_or_cut_record_never_panics(write in write(), at: proptest::sample::Index, with: u8) {
            let mut bytes = write.encode();
            let at = at.index(bytes.len());
            let _ = Write::decode(&bytes[..at]);
            bytes[at] = with;
            if let Ok(other) = Write::decode(&bytes) {
                prop_assert_eq!(other.encode(), bytes);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Write::decode(&bytes);
            if let [version, kind, flags, ..] = &mut bytes[..] {
                (*version, *kind, *flags) = (VERSION, *kind % 5, *flags % 8);
            }
            let _ = Write::decode(&bytes);
        }
    }
}
