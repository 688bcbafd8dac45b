//! Decides which versions of one key nobody can read any more. `Gc` removes them, `ScanGcKeys` looks for them.
//!
//! Of the records at or below the safe point the newest `Put` is kept, unless a `Delete` is newer, which then goes
//! last: as long as older records are left, it must hide them.

use super::{Key, MvccReader, MvccTxn, Write, WriteType};
use crate::error::Error;

/// Walks the records of a key from the newest to the oldest and says of each whether it goes.
#[derive(Debug)]
pub(crate) struct GcFilter {
    safe_point: u64,
    /// A record that settles what a read at the safe point sees has been met; everything older goes.
    settled: bool,
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Keep,
    Remove,
    /// It goes once all older records have gone.
    RemoveLast,
}

impl GcFilter {
    pub(crate) fn new(safe_point: u64) -> Self {
        Self { safe_point, settled: false }
    }

    /// The fate of the next older record.
    pub(crate) fn fate(&mut self, commit_ts: u64, write: &Write) -> Fate {
        if commit_ts > self.safe_point {
            return Fate::Keep;
        }
        let was_settled = self.settled;
        self.settled |= matches!(write.write_type, WriteType::Put | WriteType::Delete);
        if commit_ts == self.safe_point && write.is_rollback_at_its_place() {
            // A transaction that started just at the safe point is still allowed to write, unless this refuses it.
            return Fate::Keep;
        }
        match write.write_type {
            WriteType::Put if !was_settled => Fate::Keep,
            WriteType::Delete if !was_settled => Fate::RemoveLast,
            _ => Fate::Remove,
        }
    }
}

/// What a round on one key came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GcRound {
    Done,
    /// The budget ran out before the key was done.
    Unfinished,
}

/// Removes the records of a key that nobody can read, newest first, as long as `budget` lasts.
pub(crate) fn gc_key(
    txn: &mut MvccTxn,
    reader: &mut MvccReader<'_>,
    key: &Key,
    safe_point: u64,
    budget: &mut u64,
) -> Result<GcRound, Error> {
    let mut filter = GcFilter::new(safe_point);
    let mut last = None;
    let mut found = reader.seek_write(key, safe_point)?;
    while let Some((commit_ts, write)) = found {
        match filter.fate(commit_ts, &write) {
            Fate::Keep => {}
            Fate::RemoveLast => last = Some(commit_ts),
            Fate::Remove if *budget == 0 => return Ok(GcRound::Unfinished),
            Fate::Remove => {
                *budget -= 1;
                txn.delete_version(key, commit_ts, &write);
            }
        }
        found = reader.next_write(key)?;
    }
    match last {
        Some(_) if *budget == 0 => return Ok(GcRound::Unfinished),
        Some(commit_ts) => {
            *budget -= 1;
            txn.delete_write(key, commit_ts);
        }
        None => {}
    }
    Ok(GcRound::Done)
}
