//! Reads of raw keys.

use super::{
    KvPair, Processed, Request, Response,
    execute::{Execute, size_of},
    validate,
};
use crate::{
    config::Config,
    engine::{Cf, Snapshot},
    error::{Error, InvalidCommand},
};

/// Reads the value of a raw key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawGet {
    /// The key.
    pub key: Vec<u8>,
}

impl Request for RawGet {
    type Output = Option<Vec<u8>>;

    fn output(response: Response) -> Option<Self::Output> {
        match response {
            Response::Value(value) => Some(value),
            _ => None,
        }
    }
}

impl Execute for RawGet {
    const IS_READ: bool = true;

    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("key", &self.key, config)
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        each(&self.key);
    }

    fn size_bytes(&self) -> usize {
        size_of([self.key.as_slice()])
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        Ok(Processed::unchanged(Response::Value(snapshot.get(Cf::Raw, &self.key)?)))
    }
}

/// Reads the raw keys in `start_key..end_key` with their values, up to a limit. Paged like [`Scan`](super::Scan).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawScan {
    /// The least key, in reverse too. Empty for no bound.
    pub start_key: Vec<u8>,
    /// The first key behind the range, in reverse too. Empty for no bound.
    pub end_key: Vec<u8>,
    /// Most pairs to read.
    pub limit: usize,
    /// From the greatest key to the least.
    pub reverse: bool,
    /// Leave the values empty.
    pub key_only: bool,
}

impl Request for RawScan {
    type Output = Vec<KvPair>;

    fn output(response: Response) -> Option<Self::Output> {
        match response {
            Response::Pairs(pairs) => Some(pairs),
            _ => None,
        }
    }
}

impl Execute for RawScan {
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
        let mut pairs = Vec::new();
        if self.end_key.is_empty() || self.start_key < self.end_key {
            let mut cursor = snapshot.cursor(Cf::Raw, &self.start_key, &self.end_key);
            if self.reverse { cursor.seek_to_last() } else { cursor.seek_to_first() }?;
            while pairs.len() < self.limit
                && let Some((key, value)) = cursor.entry()
            {
                let value = if self.key_only { Vec::new() } else { value.to_vec() };
                pairs.push(KvPair { key: key.to_vec(), value });
                if self.reverse { cursor.prev() } else { cursor.next() }?;
            }
        }
        Ok(Processed::unchanged(Response::Pairs(pairs)))
    }
}
