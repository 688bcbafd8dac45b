//! Commits one key of a transaction. `Commit` and `ResolveLock` do this for each of theirs.

use super::{Key, MvccReader, MvccTxn, TxnCommitRecord, Write, meta};
use crate::error::Error;

/// Turns the transaction's lock on a key into a committed version at `commit_ts`. A key that it committed there
/// before stays as it is.
pub(crate) fn commit_key(
    txn: &mut MvccTxn,
    reader: &mut MvccReader<'_>,
    key: Key,
    commit_ts: u64,
) -> Result<(), Error> {
    let start_ts = txn.start_ts;
    let lock = match reader.load_lock(&key)? {
        Some(lock) if lock.start_ts == start_ts => lock,
        _ => return check_committed(reader, &key, start_ts, commit_ts),
    };
    if commit_ts < lock.min_commit_ts {
        return Err(Error::CommitTsExpired { start_ts, commit_ts, min_commit_ts: lock.min_commit_ts });
    }
    let mut write = Write::new(lock.lock_type.into(), start_ts, lock.short_value);
    // Where a transaction started at this very timestamp and was rolled back, this record takes the place of its
    // rollback and has to go on saying so.
    write.has_overlapped_rollback =
        reader.load_write(&key, commit_ts)?.is_some_and(|other| other.is_rollback_at_its_place());
    txn.put_write(&key, commit_ts, &write);
    txn.unlock_key(key);
    Ok(())
}

/// Without a lock there is nothing to commit. That is well only if it was done before, at the same timestamp.
fn check_committed(
    reader: &mut MvccReader<'_>,
    key: &Key,
    start_ts: u64,
    commit_ts: u64,
) -> Result<(), Error> {
    match reader.get_txn_commit_record(key, start_ts)? {
        TxnCommitRecord::Committed { commit_ts: recorded } if recorded == commit_ts => Ok(()),
        TxnCommitRecord::Committed { commit_ts } => Err(Error::Committed { start_ts, commit_ts }),
        TxnCommitRecord::RolledBack => Err(Error::TxnLockNotFound { start_ts, key: key.to_raw()? }),
        TxnCommitRecord::None { .. } => {
            // The record of a commit at or below the safe point may have been collected; then nobody can tell.
            let safe_point = meta::safe_point(reader.snapshot())?;
            if commit_ts <= safe_point {
                return Err(Error::GcTooEarly { read_ts: start_ts, safe_point });
            }
            Err(Error::TxnLockNotFound { start_ts, key: key.to_raw()? })
        }
    }
}
