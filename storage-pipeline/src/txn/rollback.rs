//! Rolls back one key of a transaction, and leaves a record so that it stays so. `Rollback`, `Cleanup`,
//! `CheckTxnStatus` and `ResolveLock` do this.
//!
//! A rollback record stands at the transaction's start timestamp and refuses its prewrite if that arrives late. An
//! unprotected one may be removed when a newer rollback is recorded on the key, which refuses the prewrite as well.

use super::{Key, Lock, MvccReader, MvccTxn, TxnCommitRecord, Write, WriteType, timestamp};
use crate::error::Error;

/// Whether the record of a rollback may be removed by later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// It stays until it is collected: others will ask this key for the transaction's fate.
    Protected,
    /// It may be removed, and removes its own predecessor.
    Collapsible,
}

/// What was known of a transaction that holds no lock on a key, before its rollback there was made sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingLock {
    Committed {
        commit_ts: u64,
    },
    RolledBack,
    /// Nothing was known; the rollback is recorded now.
    LockNotExist,
}

/// Rolls the transaction back on a key. A lock that has not expired by `current_ts` stops it; zero asks not.
pub(crate) fn cleanup_key(
    txn: &mut MvccTxn,
    reader: &mut MvccReader<'_>,
    key: Key,
    current_ts: u64,
    protection: Protection,
) -> Result<(), Error> {
    let start_ts = txn.start_ts;
    match reader.load_lock(&key)? {
        Some(lock) if lock.start_ts == start_ts => {
            if current_ts != 0 && !timestamp::is_expired(start_ts, lock.ttl_ms, current_ts) {
                return Err(lock.blocks(&key));
            }
            rollback_lock(txn, reader, key, &lock, protection)
        }
        _ => match rollback_missing_lock(txn, reader, &key, protection)? {
            MissingLock::Committed { commit_ts } => Err(Error::Committed { start_ts, commit_ts }),
            MissingLock::RolledBack | MissingLock::LockNotExist => Ok(()),
        },
    }
}

/// Takes the transaction's own lock away from a key, with its value. A primary key's record is protected whatever
/// the caller says, because the locks on all other keys point to it.
pub(crate) fn rollback_lock(
    txn: &mut MvccTxn,
    reader: &mut MvccReader<'_>,
    key: Key,
    lock: &Lock,
    protection: Protection,
) -> Result<(), Error> {
    match reader.get_txn_commit_record(&key, txn.start_ts)? {
        TxnCommitRecord::Committed { commit_ts } => {
            let what = format!(
                "transaction {} holds a lock on a key that it committed at {commit_ts}",
                txn.start_ts
            );
            return Err(Error::Corrupt(what.into()));
        }
        TxnCommitRecord::RolledBack => {}
        TxnCommitRecord::None { overlapped_write } => {
            let is_primary = key.to_raw()? == lock.primary;
            let protection = if is_primary { Protection::Protected } else { protection };
            record_rollback(txn, reader, &key, overlapped_write, protection)?;
        }
    }
    txn.delete_value_of(&key, lock);
    txn.unlock_key(key);
    Ok(())
}

/// Makes sure that the transaction, which holds no lock on the key, never gets one there, unless it is committed.
pub(crate) fn rollback_missing_lock(
    txn: &mut MvccTxn,
    reader: &mut MvccReader<'_>,
    key: &Key,
    protection: Protection,
) -> Result<MissingLock, Error> {
    match reader.get_txn_commit_record(key, txn.start_ts)? {
        TxnCommitRecord::Committed { commit_ts } => Ok(MissingLock::Committed { commit_ts }),
        TxnCommitRecord::RolledBack => Ok(MissingLock::RolledBack),
        TxnCommitRecord::None { overlapped_write } => {
            record_rollback(txn, reader, key, overlapped_write, protection)?;
            Ok(MissingLock::LockNotExist)
        }
    }
}

fn record_rollback(
    txn: &mut MvccTxn,
    reader: &mut MvccReader<'_>,
    key: &Key,
    overlapped_write: Option<Write>,
    protection: Protection,
) -> Result<(), Error> {
    let start_ts = txn.start_ts;
    if protection == Protection::Collapsible
        && let Some((older_ts, older)) = reader.seek_write(key, start_ts)?
        && older.write_type == WriteType::Rollback
        && !older.protected
    {
        txn.delete_write(key, older_ts);
    }
    let write = match overlapped_write {
        Some(write) => Write { has_overlapped_rollback: true, ..write },
        None => Write::new_rollback(start_ts, protection == Protection::Protected),
    };
    txn.put_write(key, start_ts, &write);
    Ok(())
}
