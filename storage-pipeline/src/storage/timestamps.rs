//! Timestamps, and transactions, which begin with one.

use std::time::{Duration, Instant};

use super::{FOREVER, Storage};
use crate::{
    client::{oracle::TimestampOracle, transaction::Transaction},
    command::AllocateTimestamps,
    error::{Error, Outcome},
    threads,
};

impl Storage {
    /// The source of timestamps for transactions.
    #[must_use]
    pub fn oracle(&self) -> &TimestampOracle {
        &self.0.oracle
    }

    /// A timestamp greater than every one that was given out before, by whatever replica, in this store's whole life. Only
    /// the leader gives any. Waits at most the default timeout; in a callback it is refused where it would wait.
    pub fn timestamp(&self) -> Outcome<u64> {
        self.timestamp_within(self.default_timeout())
    }

    /// As [`timestamp`](Self::timestamp), and waits at most this long.
    pub fn timestamp_within(&self, timeout: Duration) -> Outcome<u64> {
        if threads::is_pipeline() {
            // Whoever extends the window may be waiting for this very thread.
            let at_hand = self.timestamp_at_hand();
            return at_hand.map_or(Outcome::NotExecuted(Error::WouldBlockPipeline), Outcome::Applied);
        }
        let now = Instant::now();
        let until = now.checked_add(timeout).unwrap_or(now + FOREVER);
        self.0.oracle.timestamp(
            until,
            || self.fence(),
            |at_least, window| {
                let left = until.saturating_duration_since(Instant::now());
                self.execute_within(AllocateTimestamps { at_least, window }, left)
            },
        )
    }

    /// As [`timestamp`](Self::timestamp), where that waits for nobody.
    pub(crate) fn timestamp_at_hand(&self) -> Option<u64> {
        self.0.oracle.at_hand(|| self.fence())
    }

    /// Begins a transaction that reads the store as it is now.
    pub fn begin(&self) -> Outcome<Transaction<Self>> {
        self.timestamp().map(|start_ts| Transaction::new(self.clone(), start_ts))
    }
}
