//! Raw keys: a column family of their own, no versions, no transactions. Their writes are not idempotent, so one
//! whose outcome is unknown must not simply be repeated.

use super::{
    CompareAndSwapResult, KvPair, Processed, Request, Response,
    execute::{Execute, size_of},
    latch, validate,
};
use crate::{
    config::Config,
    engine::{Cf, Modify, Snapshot},
    error::{Error, InvalidCommand},
};

/// Sets the value of a raw key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawPut {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

impl Request for RawPut {
    type Output = ();

    fn output(response: Response) -> Option<()> {
        matches!(response, Response::Done).then_some(())
    }
}

impl Execute for RawPut {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("key", &self.key, config)?;
        validate::value("value", &self.value, config)
    }

    fn latches(&self) -> Vec<u64> {
        vec![latch::raw(&self.key)]
    }

    fn size_bytes(&self) -> usize {
        size_of([self.key.as_slice(), &self.value])
    }

    fn process(self, _: &dyn Snapshot) -> Result<Processed, Error> {
        let modifies = vec![Modify::Put(Cf::Raw, self.key, self.value)];
        Ok(Processed { modifies, response: Response::Done })
    }
}

/// Removes a raw key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawDelete {
    /// The key.
    pub key: Vec<u8>,
}

impl Request for RawDelete {
    type Output = ();

    fn output(response: Response) -> Option<()> {
        matches!(response, Response::Done).then_some(())
    }
}

impl Execute for RawDelete {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("key", &self.key, config)
    }

    fn latches(&self) -> Vec<u64> {
        vec![latch::raw(&self.key)]
    }

    fn size_bytes(&self) -> usize {
        size_of([self.key.as_slice()])
    }

    fn process(self, _: &dyn Snapshot) -> Result<Processed, Error> {
        Ok(Processed { modifies: vec![Modify::Delete(Cf::Raw, self.key)], response: Response::Done })
    }
}

/// Sets the value of a raw key, if its value before is the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawCompareAndSwap {
    /// The key.
    pub key: Vec<u8>,
    /// The value that is expected; `None` if the key is expected to have none.
    pub previous: Option<Vec<u8>>,
    /// The value to set.
    pub value: Vec<u8>,
}

impl Request for RawCompareAndSwap {
    type Output = CompareAndSwapResult;

    fn output(response: Response) -> Option<CompareAndSwapResult> {
        match response {
            Response::CompareAndSwap(result) => Some(result),
            _ => None,
        }
    }
}

impl Execute for RawCompareAndSwap {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("key", &self.key, config)?;
        validate::value("previous", self.previous.as_deref().unwrap_or_default(), config)?;
        validate::value("value", &self.value, config)
    }

    fn latches(&self) -> Vec<u64> {
        vec![latch::raw(&self.key)]
    }

    fn size_bytes(&self) -> usize {
        size_of([self.key.as_slice(), self.previous.as_deref().unwrap_or_default(), &self.value])
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        let previous = snapshot.get(Cf::Raw, &self.key)?;
        let succeeded = previous == self.previous;
        let modifies = match succeeded {
            true => vec![Modify::Put(Cf::Raw, self.key, self.value)],
            false => Vec::new(),
        };
        Ok(Processed {
            modifies,
            response: Response::CompareAndSwap(CompareAndSwapResult { succeeded, previous }),
        })
    }
}

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
