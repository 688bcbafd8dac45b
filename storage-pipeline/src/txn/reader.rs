//! Finds the locks and versions of single keys in a snapshot. Hands commands what they decide by.

use super::{
    keys::{Key, split_ts},
    lock::Lock,
    write::{Write, WriteType},
};
use crate::{
    engine::{Cf, Cursor, Snapshot},
    error::Error,
};

/// What a key tells of a transaction that holds no lock on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxnCommitRecord {
    /// It committed, at this timestamp.
    Committed {
        /// The commit timestamp.
        commit_ts: u64,
    },
    /// It was rolled back.
    RolledBack,
    /// Nothing.
    None {
        /// The record of another transaction that committed just at the start timestamp of this one, so that a
        /// rollback has to be noted inside it.
        overlapped_write: Option<Write>,
    },
}

/// A reader of locks and versions. It makes its cursor when it first needs one and then reuses it.
pub struct MvccReader<'s> {
    snapshot: &'s dyn Snapshot,
    lower: Vec<u8>,
    upper: Vec<u8>,
    writes: Option<Box<dyn Cursor + 's>>,
}

impl<'s> MvccReader<'s> {
    /// A reader of one key.
    #[must_use]
    pub fn for_key(snapshot: &'s dyn Snapshot, key: &Key) -> Self {
        Self::for_keys(snapshot, std::slice::from_ref(key))
    }

    /// A reader of these keys and those between them. The narrower its range, the fewer removed entries it meets.
    #[must_use]
    pub fn for_keys(snapshot: &'s dyn Snapshot, keys: &[Key]) -> Self {
        let lower = keys.iter().min().map(|key| key.as_encoded().to_vec());
        let upper = keys.iter().max().map(Key::after_versions);
        Self { snapshot, lower: lower.unwrap_or_default(), upper: upper.unwrap_or_default(), writes: None }
    }

    /// The snapshot it reads.
    #[must_use]
    pub fn snapshot(&self) -> &'s dyn Snapshot {
        self.snapshot
    }

    /// The lock on a key.
    ///
    /// # Errors
    /// The engine's refusal, or [`Error::Corrupt`].
    pub fn load_lock(&self, key: &Key) -> Result<Option<Lock>, Error> {
        self.snapshot.get(Cf::Lock, key.as_encoded())?.map(|bytes| Lock::decode(&bytes)).transpose()
    }

    /// The record at exactly this commit timestamp.
    ///
    /// # Errors
    /// The engine's refusal, or [`Error::Corrupt`].
    pub fn load_write(&self, key: &Key, commit_ts: u64) -> Result<Option<Write>, Error> {
        self.snapshot
            .get(Cf::Write, &key.append_ts(commit_ts))?
            .map(|bytes| Write::decode(&bytes))
            .transpose()
    }

    /// The newest record of a key at or before `ts`, with its commit timestamp.
    ///
    /// # Errors
    /// The engine's refusal, or [`Error::Corrupt`].
    pub fn seek_write(&mut self, key: &Key, ts: u64) -> Result<Option<(u64, Write)>, Error> {
        self.writes().seek(&key.append_ts(ts))?;
        self.write_here(key)
    }

    /// The next older record of a key, after one was found.
    ///
    /// # Errors
    /// The engine's refusal, or [`Error::Corrupt`].
    pub fn next_write(&mut self, key: &Key) -> Result<Option<(u64, Write)>, Error> {
        self.writes().next()?;
        self.write_here(key)
    }

    fn write_here(&mut self, key: &Key) -> Result<Option<(u64, Write)>, Error> {
        let Some((stored, bytes)) = self.writes().entry() else {
            return Ok(None);
        };
        let (user_key, commit_ts) = split_ts(stored)?;
        if user_key != key.as_encoded() {
            return Ok(None);
        }
        Ok(Some((commit_ts, Write::decode(bytes)?)))
    }

    fn writes(&mut self) -> &mut (dyn Cursor + 's) {
        let Self { snapshot, lower, upper, writes } = self;
        &mut **writes.get_or_insert_with(|| snapshot.cursor(Cf::Write, lower, upper))
    }

    /// The `Put` that a read at `read_ts` sees, whatever lock is on the key.
    ///
    /// # Errors
    /// The engine's refusal, or [`Error::Corrupt`].
    pub fn visible_write(&mut self, key: &Key, read_ts: u64) -> Result<Option<Write>, Error> {
        let mut found = self.seek_write(key, read_ts)?;
        while let Some((_, write)) = found {
            match write.write_type {
                WriteType::Put => return Ok(Some(write)),
                WriteType::Delete => return Ok(None),
                WriteType::Lock | WriteType::Rollback => found = self.next_write(key)?,
            }
        }
        Ok(None)
    }

    /// The value that a read at `read_ts` sees, whatever lock is on the key.
    ///
    /// # Errors
    /// The engine's refusal, or [`Error::Corrupt`].
    pub fn get(&mut self, key: &Key, read_ts: u64) -> Result<Option<Vec<u8>>, Error> {
        let write = self.visible_write(key, read_ts)?;
        write.map(|write| load_value(self.snapshot, key, write)).transpose()
    }

    /// What a key's records tell of the transaction that started at `start_ts`.
    ///
    /// # Errors
    /// The engine's refusal, or [`Error::Corrupt`].
    pub fn get_txn_commit_record(&mut self, key: &Key, start_ts: u64) -> Result<TxnCommitRecord, Error> {
        let mut found = self.seek_write(key, u64::MAX)?;
        while let Some((commit_ts, write)) = found {
            if write.start_ts == start_ts {
                return Ok(match write.write_type {
                    WriteType::Rollback => TxnCommitRecord::RolledBack,
                    _ => TxnCommitRecord::Committed { commit_ts },
                });
            }
            if commit_ts == start_ts {
                return Ok(match write.has_overlapped_rollback {
                    true => TxnCommitRecord::RolledBack,
                    false => TxnCommitRecord::None { overlapped_write: Some(write) },
                });
            }
            if commit_ts < start_ts {
                break;
            }
            found = self.next_write(key)?;
        }
        Ok(TxnCommitRecord::None { overlapped_write: None })
    }
}

/// The value that a `Put` record stands for.
///
/// # Errors
/// The engine's refusal, or [`Error::Corrupt`] where a long value is missing.
pub fn load_value(snapshot: &dyn Snapshot, key: &Key, write: Write) -> Result<Vec<u8>, Error> {
    if let Some(value) = write.short_value {
        return Ok(value);
    }
    snapshot.get(Cf::Default, &key.append_ts(write.start_ts))?.ok_or_else(|| {
        let key = key.as_encoded().escape_ascii();
        Error::Corrupt(format!("the value of \"{key}\" of transaction {} is missing", write.start_ts).into())
    })
}
