//! Writes of raw keys: a column family of their own, no versions, no transactions. They are not idempotent, so one
//! whose outcome is unknown must not simply be repeated.

use super::{
    CompareAndSwapResult, Processed, Request, Response,
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
    const IS_BLIND: bool = true;

    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("key", &self.key, config)?;
        validate::value("value", &self.value, config)
    }

    fn latches(&self) -> Vec<u64> {
        vec![latch::raw(&self.key)]
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        each(&self.key);
    }

    fn size_bytes(&self) -> usize {
        size_of([self.key.as_slice(), &self.value])
    }

    fn process_blind(self) -> Result<Processed, Self> {
        Ok(done(Modify::Put(Cf::Raw, self.key, self.value)))
    }

    fn process(self, _: &dyn Snapshot) -> Result<Processed, Error> {
        Ok(done(Modify::Put(Cf::Raw, self.key, self.value)))
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
    const IS_BLIND: bool = true;

    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("key", &self.key, config)
    }

    fn latches(&self) -> Vec<u64> {
        vec![latch::raw(&self.key)]
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        each(&self.key);
    }

    fn size_bytes(&self) -> usize {
        size_of([self.key.as_slice()])
    }

    fn process_blind(self) -> Result<Processed, Self> {
        Ok(done(Modify::Delete(Cf::Raw, self.key)))
    }

    fn process(self, _: &dyn Snapshot) -> Result<Processed, Error> {
        Ok(done(Modify::Delete(Cf::Raw, self.key)))
    }
}

/// What a write that reads nothing comes to.
fn done(modify: Modify) -> Processed {
    Processed { modifies: vec![modify], response: Response::Done }
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

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        each(&self.key);
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
