//! Walks a range of keys, locks and versions side by side, in either direction. Hands on what is visible.

use std::cmp::Ordering;

use super::{
    keys::{Key, split_ts},
    lock::Lock,
    reader::load_value,
    write::{Write, WriteType},
};
use crate::{
    engine::{Cf, Cursor, Snapshot},
    error::Error,
};

/// Steps that are tried before a seek: most keys have few versions, and a step is far cheaper.
const SEEK_BOUND: usize = 8;

/// A key and its value, as the user gave them.
pub type Pair = (Vec<u8>, Vec<u8>);

/// What to read, and how.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions<'a> {
    /// Versions committed at or before this are visible.
    pub read_ts: u64,
    /// From the end of the range to its beginning.
    pub reverse: bool,
    /// Leave the values empty.
    pub key_only: bool,
    /// Transactions whose locks do not stop the read.
    pub bypass_locks: &'a [u64],
}

/// A walk over the keys that have a visible value.
pub struct Scanner<'s> {
    snapshot: &'s dyn Snapshot,
    options: ScanOptions<'s>,
    locks: Box<dyn Cursor + 's>,
    writes: Box<dyn Cursor + 's>,
}

impl<'s> Scanner<'s> {
    /// A walk over the user keys in `start_key..end_key`; an empty `end_key` means no bound. `None` for a range that
    /// holds no key, of which no cursor should be asked.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn new(
        snapshot: &'s dyn Snapshot,
        start_key: &[u8],
        end_key: &[u8],
        options: ScanOptions<'s>,
    ) -> Result<Option<Self>, Error> {
        let Some((lower, upper)) = encoded_range(start_key, end_key) else {
            return Ok(None);
        };
        let mut locks = snapshot.cursor(Cf::Lock, &lower, &upper);
        let mut writes = snapshot.cursor(Cf::Write, &lower, &upper);
        for cursor in [&mut locks, &mut writes] {
            if options.reverse { cursor.seek_to_last() } else { cursor.seek_to_first() }?;
        }
        Ok(Some(Self { snapshot, options, locks, writes }))
    }

    /// The next key that has a visible value, with its value.
    ///
    /// # Errors
    /// [`Error::KeyIsLocked`], the engine's refusal, or [`Error::Corrupt`].
    pub fn next_pair(&mut self) -> Result<Option<Pair>, Error> {
        while let Some((key, has_lock, has_writes)) = self.next_key()? {
            if has_lock {
                self.pass_lock(&key)?;
            }
            if !has_writes {
                continue;
            }
            let visible = self.visible_write(&key)?;
            self.pass_versions(&key)?;
            if let Some(write) = visible {
                let value = match self.options.key_only {
                    true => Vec::new(),
                    false => load_value(self.snapshot, &key, write)?,
                };
                return Ok(Some((key.to_raw()?, value)));
            }
        }
        Ok(None)
    }

    /// The nearest key ahead, and which of the two cursors stand on it.
    fn next_key(&self) -> Result<Option<(Key, bool, bool)>, Error> {
        let lock = self.locks.entry().map(|(key, _)| key);
        let write = self.writes.entry().map(|(stored, _)| split_ts(stored)).transpose()?.map(|(key, _)| key);
        Ok(match (lock, write) {
            (None, None) => None,
            (Some(lock), None) => Some((Key::from_encoded(lock), true, false)),
            (None, Some(write)) => Some((Key::from_encoded(write), false, true)),
            (Some(lock), Some(write)) => {
                let order = if self.options.reverse { write.cmp(lock) } else { lock.cmp(write) };
                let nearest = if order == Ordering::Greater { write } else { lock };
                Some((Key::from_encoded(nearest), order != Ordering::Greater, order != Ordering::Less))
            }
        })
    }

    fn pass_lock(&mut self, key: &Key) -> Result<(), Error> {
        if let Some((_, bytes)) = self.locks.entry() {
            let lock = Lock::decode(bytes)?;
            if lock.blocks_read(self.options.read_ts, self.options.bypass_locks) {
                return Err(lock.blocks(key));
            }
        }
        Ok(if self.options.reverse { self.locks.prev() } else { self.locks.next() }?)
    }

    /// The `Put` that is visible at this key, on one of whose versions the cursor stands.
    fn visible_write(&mut self, key: &Key) -> Result<Option<Write>, Error> {
        let newest_visible = key.append_ts(self.options.read_ts);
        if self.options.reverse {
            self.writes.seek(&newest_visible)?;
        } else {
            advance_to(&mut *self.writes, &newest_visible)?;
        }
        while let Some((stored, bytes)) = self.writes.entry() {
            if split_ts(stored)?.0 != key.as_encoded() {
                break;
            }
            let write = Write::decode(bytes)?;
            match write.write_type {
                WriteType::Put => return Ok(Some(write)),
                WriteType::Delete => break,
                WriteType::Lock | WriteType::Rollback => self.writes.next()?,
            }
        }
        Ok(None)
    }

    fn pass_versions(&mut self, key: &Key) -> Result<(), Error> {
        if self.options.reverse {
            // No version is stored at the bare key, which sorts before all of its versions.
            return Ok(self.writes.seek_for_prev(key.as_encoded())?);
        }
        advance_to(&mut *self.writes, &key.after_versions())
    }
}

/// The stored keys of the user keys in a range; `None` where the range holds none.
pub(crate) fn encoded_range(start_key: &[u8], end_key: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if end_key.is_empty() {
        return Some((Key::from_raw(start_key).into_encoded(), Vec::new()));
    }
    (start_key < end_key)
        .then(|| (Key::from_raw(start_key).into_encoded(), Key::from_raw(end_key).into_encoded()))
}

/// Moves a cursor forward to the first stored key at or after `target`, which may be the one where it stands.
pub(crate) fn advance_to(cursor: &mut dyn Cursor, target: &[u8]) -> Result<(), Error> {
    for _ in 0..SEEK_BOUND {
        match cursor.entry() {
            Some((stored, _)) if stored < target => cursor.next()?,
            _ => return Ok(()),
        }
    }
    Ok(cursor.seek(target)?)
}
