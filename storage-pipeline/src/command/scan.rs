//! Reads a range of keys as of a timestamp, in either direction.

use super::{
    KvPair, Processed, Request, Response,
    execute::{Execute, size_of, size_of_timestamps},
    validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
    txn::{ScanOptions, Scanner, meta},
};

/// Reads the values that the keys in `start_key..end_key` have at a timestamp, up to a limit.
///
/// For the next page begin at the immediate successor of the last key, which is that key with a zero byte behind it;
/// in reverse, end at the last key. Its errors are those of [`Get`](super::Get); a locked key fails the page that
/// would reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The least key, in reverse too. Empty for no bound.
    pub start_key: Vec<u8>,
    /// The first key behind the range, in reverse too. Empty for no bound.
    pub end_key: Vec<u8>,
    /// Most pairs to read.
    pub limit: usize,
    /// Versions committed at or before this are visible.
    pub read_ts: u64,
    /// From the greatest key to the least.
    pub reverse: bool,
    /// Leave the values empty, which saves reading long ones.
    pub key_only: bool,
    /// Start timestamps of transactions whose locks to read past, because they can only commit above `read_ts`.
    pub bypass_locks: Vec<u64>,
}

impl Request for Scan {
    type Output = Vec<KvPair>;

    fn output(response: Response) -> Option<Self::Output> {
        match response {
            Response::Pairs(pairs) => Some(pairs),
            _ => None,
        }
    }
}

impl Execute for Scan {
    const IS_READ: bool = true;

    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::bound("start_key", &self.start_key, config)?;
        validate::bound("end_key", &self.end_key, config)?;
        validate::limit("limit", self.limit)?;
        validate::timestamp("read_ts", self.read_ts)
    }

    fn key_range(&self) -> Option<(&[u8], &[u8])> {
        Some((&self.start_key, &self.end_key))
    }

    fn size_bytes(&self) -> usize {
        size_of([self.start_key.as_slice(), &self.end_key])
            .saturating_add(size_of_timestamps(&self.bypass_locks))
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        meta::check_safe_point(snapshot, self.read_ts)?;
        let options = ScanOptions {
            read_ts: self.read_ts,
            reverse: self.reverse,
            key_only: self.key_only,
            bypass_locks: &self.bypass_locks,
        };
        let mut pairs = Vec::new();
        if let Some(mut scanner) = Scanner::new(snapshot, &self.start_key, &self.end_key, options)? {
            while pairs.len() < self.limit
                && let Some((key, value)) = scanner.next_pair()?
            {
                pairs.push(KvPair { key, value });
            }
        }
        Ok(Processed::unchanged(Response::Pairs(pairs)))
    }
}
