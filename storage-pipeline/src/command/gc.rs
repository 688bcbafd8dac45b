//! Removes versions that nobody can read any more, and raises the safe point below which nobody may read.

use super::{
    GcResult, Processed, Request, Response,
    commit::encode_keys,
    execute::{Execute, size_of_keys},
    latch,
    scan_lock::old_locks,
    validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
    txn::{
        MvccReader, MvccTxn,
        gc::{GcRound, gc_key},
        meta::Number,
    },
};

/// Records that one command removes at most, so that its proposal stays small.
const MAX_REMOVED: u64 = 4096;

/// Raises the safe point and removes what it makes unreadable from a list of keys.
///
/// A driver first resolves the locks that [`ScanLock`](super::ScanLock) lists up to the safe point. It then raises
/// the safe point with an empty list, and goes through the pages of [`ScanGcKeys`](super::ScanGcKeys). A safe point
/// that is lower than the stored one counts as the stored one.
///
/// [`Error::KeyIsLocked`] says that a lock from the safe point or before is left. Its transaction may be committed,
/// and the proof of that may be among the records that would be removed, so nothing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gc {
    /// Reads below this are refused from now on. It must lie in the past.
    pub safe_point: u64,
    /// The keys to clear of what no read at or above the safe point sees. May be empty.
    pub keys: Vec<Vec<u8>>,
}

impl Request for Gc {
    type Output = GcResult;

    fn output(response: Response) -> Option<GcResult> {
        match response {
            Response::Gc(result) => Some(result),
            _ => None,
        }
    }
}

impl Execute for Gc {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::timestamp("safe_point", self.safe_point)?;
        self.keys.iter().try_for_each(|key| validate::key("keys", key, config))
    }

    fn latches(&self) -> Vec<u64> {
        // Two of these must not both compare with the same old safe point.
        let mut hashes = latch::txn_keys(&self.keys);
        hashes.push(latch::own(Number::SafePoint.key()));
        hashes
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        self.keys.iter().for_each(|key| each(key));
    }

    fn size_bytes(&self) -> usize {
        size_of_keys(&self.keys)
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        let stored = Number::SafePoint.load(snapshot)?.unwrap_or(0);
        let safe_point = self.safe_point.max(stored);
        let mut modifies = Vec::new();
        if safe_point > stored {
            check_is_past(snapshot, safe_point)?;
            if let Some(lock) = old_locks(snapshot, Default::default(), safe_point, 1)?.pop() {
                return Err(Error::KeyIsLocked(Box::new(lock)));
            }
            modifies.push(Number::SafePoint.put(safe_point));
        }
        let mut txn = MvccTxn::new(safe_point);
        let mut budget = MAX_REMOVED;
        let mut unfinished = Vec::new();
        let encoded = encode_keys(&self.keys);
        let mut reader = MvccReader::for_keys(snapshot, &encoded);
        for (key, encoded) in self.keys.into_iter().zip(&encoded) {
            match reader.load_lock(encoded)? {
                Some(lock) if lock.start_ts <= safe_point => return Err(lock.blocks(encoded)),
                _ => {}
            }
            if gc_key(&mut txn, &mut reader, encoded, safe_point, &mut budget)? == GcRound::Unfinished {
                unfinished.push(key);
            }
        }
        modifies.extend(txn.into_modifies());
        let response = Response::Gc(GcResult { safe_point, removed: MAX_REMOVED - budget, unfinished });
        Ok(Processed { modifies, response })
    }
}

/// Refuses a safe point that no timestamp handed out by the allocator has reached: it would stop every transaction.
fn check_is_past(snapshot: &dyn Snapshot, safe_point: u64) -> Result<(), Error> {
    match Number::TimestampBound.load(snapshot)? {
        Some(bound) if safe_point >= bound => Err(Error::InvalidCommand(InvalidCommand::OutOfRange {
            field: "safe_point".into(),
            value: safe_point,
            range: "below the timestamps that are still to be allocated".into(),
        })),
        _ => Ok(()),
    }
}
