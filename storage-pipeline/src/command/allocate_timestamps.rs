//! Reserves a range of timestamps, for good: the bound is replicated, so no leader and no restart hands one out
//! twice. Hands the oracle its next window.

use super::{
    Processed, Request, Response, TimestampRange,
    execute::{Execute, size_of},
    latch, validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
    txn::meta::Number,
};

/// Reserves `window` timestamps, none of them below `at_least` or below any that was reserved before.
///
/// It is safe to repeat: what the first attempt reserved is then simply not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocateTimestamps {
    /// The least timestamp that is wanted, usually [`compose`](crate::txn::timestamp::compose)d from the wall clock.
    pub at_least: u64,
    /// How many to reserve.
    pub window: u64,
}

impl Request for AllocateTimestamps {
    type Output = TimestampRange;

    fn output(response: Response) -> Option<TimestampRange> {
        match response {
            Response::Timestamps(range) => Some(range),
            _ => None,
        }
    }
}

impl Execute for AllocateTimestamps {
    fn validate(&self, _: &Config) -> Result<(), InvalidCommand> {
        validate::timestamp("window", self.window)?;
        validate::timestamp_or_none("at_least", self.at_least)
    }

    fn latches(&self) -> Vec<u64> {
        vec![latch::own(Number::TimestampBound.key())]
    }

    fn size_bytes(&self) -> usize {
        size_of([])
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        // Zero is no timestamp, nor is the greatest number: commands give them other meanings.
        let bound = Number::TimestampBound.load(snapshot)?.unwrap_or(1);
        let first = bound.max(self.at_least);
        let limit =
            first.checked_add(self.window).ok_or(Error::InvalidCommand(InvalidCommand::OutOfRange {
                field: "window".into(),
                value: self.window,
                range: "small enough for the timestamps that are left".into(),
            }))?;
        let modifies = vec![Number::TimestampBound.put(limit)];
        Ok(Processed { modifies, response: Response::Timestamps(TimestampRange { first, limit }) })
    }
}
