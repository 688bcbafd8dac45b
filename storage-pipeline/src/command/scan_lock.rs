//! Lists old locks, so that they can be resolved before garbage is collected.

use super::{
    Processed, Request, Response,
    execute::{Execute, size_of},
    validate,
};
use crate::{
    config::Config,
    engine::{Cf, Snapshot},
    error::{Error, InvalidCommand, LockInfo},
    txn::{Key, Lock, scanner::encoded_range},
};

/// Lists the locks on the keys in `start_key..end_key` whose transactions started at or before a timestamp.
///
/// For the next page begin at the immediate successor of the last key, which is that key with a zero byte behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanLock {
    /// The latest start timestamp to list.
    pub max_ts: u64,
    /// The first key. Empty for no bound.
    pub start_key: Vec<u8>,
    /// The first key behind the range. Empty for no bound.
    pub end_key: Vec<u8>,
    /// Most locks to list.
    pub limit: usize,
}

impl Request for ScanLock {
    type Output = Vec<LockInfo>;

    fn output(response: Response) -> Option<Self::Output> {
        match response {
            Response::Locks(locks) => Some(locks),
            _ => None,
        }
    }
}

impl Execute for ScanLock {
    const IS_READ: bool = true;

    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::bound("start_key", &self.start_key, config)?;
        validate::bound("end_key", &self.end_key, config)?;
        validate::limit("limit", self.limit)
    }

    fn key_range(&self) -> Option<(&[u8], &[u8])> {
        Some((&self.start_key, &self.end_key))
    }

    fn size_bytes(&self) -> usize {
        size_of([self.start_key.as_slice(), &self.end_key])
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        let locks = match encoded_range(&self.start_key, &self.end_key) {
            Some(range) => old_locks(snapshot, range, self.max_ts, self.limit)?,
            None => Vec::new(),
        };
        Ok(Processed::unchanged(Response::Locks(locks)))
    }
}

/// The first locks in a range of stored keys whose transactions started at or before `max_ts`.
pub(super) fn old_locks(
    snapshot: &dyn Snapshot,
    (lower, upper): (Vec<u8>, Vec<u8>),
    max_ts: u64,
    limit: usize,
) -> Result<Vec<LockInfo>, Error> {
    let mut cursor = snapshot.cursor(Cf::Lock, &lower, &upper);
    let mut locks = Vec::new();
    cursor.seek_to_first()?;
    while locks.len() < limit
        && let Some((key, bytes)) = cursor.entry()
    {
        let lock = Lock::decode(bytes)?;
        if lock.start_ts <= max_ts {
            locks.push(lock.into_info(&Key::from_encoded(key))?);
        }
        cursor.next()?;
    }
    Ok(locks)
}
