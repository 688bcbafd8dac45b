//! The timestamp oracle: hands out timestamps from a window whose end is replicated before any of it is used.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::{
    command::TimestampRange,
    error::{Error, Outcome},
    txn::timestamp,
};

/// How far ahead of the clock a window reaches. After a restart the timestamps may run ahead by this much.
const WINDOW: Duration = Duration::from_secs(3);
/// The shortest window: the first after a restart, or timestamps would run ahead by one more window with each, and no
/// lock expires while the clock catches up.
const SHORTEST: Duration = Duration::from_millis(1);

/// Gives out strictly increasing timestamps, over restarts too. The upper bits are milliseconds since 1970, the lower
/// 18 a counter, as in PD.
#[derive(Debug, Default)]
pub struct TimestampOracle {
    window: Mutex<Window>,
    /// Held by whoever extends the window, so that the others wait for it instead of extending as well.
    extending: Mutex<()>,
}

#[derive(Debug, Default)]
struct Window {
    next: u64,
    limit: u64,
}

impl Window {
    /// The next timestamp, not behind the clock.
    fn take(&mut self, now: u64) -> Option<u64> {
        let timestamp = self.next.max(now);
        if timestamp >= self.limit {
            return None;
        }
        self.next = timestamp + 1;
        Some(timestamp)
    }

    /// How many timestamps the next window should have.
    fn wanted(&self, now: u64) -> u64 {
        let [window, shortest] =
            [WINDOW, SHORTEST].map(|length| timestamp::compose(length.as_millis() as u64, 0));
        match self.limit {
            0 => shortest,
            limit => now.saturating_add(window).saturating_sub(limit.max(now)).max(shortest),
        }
    }
}

impl TimestampOracle {
    /// The next timestamp, where the window has one. Waits for nobody.
    pub(crate) fn at_hand(&self) -> Option<u64> {
        self.window.lock().take(wall_clock())
    }

    /// The next timestamp. `extend` replicates a new end of the window: it gets the least timestamp that is of use and
    /// how many are wanted. Waits for another's extension at most until a moment.
    pub(crate) fn timestamp(
        &self,
        until: Instant,
        extend: impl Fn(u64, u64) -> Outcome<TimestampRange>,
    ) -> Outcome<u64> {
        loop {
            if let Some(timestamp) = self.at_hand() {
                return Outcome::Applied(timestamp);
            }
            let Some(_extending) = self.extending.try_lock_until(until) else {
                return Outcome::NotExecuted(Error::DeadlineExceeded);
            };
            if let Some(timestamp) = self.at_hand() {
                return Outcome::Applied(timestamp);
            }
            let now = wall_clock();
            let wanted = self.window.lock().wanted(now);
            match extend(now, wanted) {
                Outcome::Applied(range) => {
                    *self.window.lock() = Window { next: range.first, limit: range.limit };
                }
                Outcome::NotExecuted(error) => return Outcome::NotExecuted(error),
                Outcome::Indeterminate(cause) => return Outcome::Indeterminate(cause),
            }
        }
    }
}

/// The wall clock as a timestamp. It may jump back: the window does not.
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    timestamp::compose(u64::try_from(since.as_millis()).unwrap_or(u64::MAX >> 18), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn timestamps_rise_over_windows_and_never_leave_a_replicated_one() {
        let bound = Cell::new(0);
        let extend = |at_least: u64, _| {
            let first = at_least.max(bound.get());
            bound.set(first + 3);
            Outcome::Applied(TimestampRange { first, limit: first + 3 })
        };
        let oracle = TimestampOracle::default();
        let mut last = 0;
        for _ in 0..100 {
            let Outcome::Applied(next) = oracle.timestamp(Instant::now(), extend) else {
                panic!("the window can be extended")
            };
            assert!(next > last && next < bound.get());
            last = next;
        }
    }

    #[test]
    fn a_window_that_cannot_be_extended_gives_nothing_out() {
        let oracle = TimestampOracle::default();
        let refused = oracle.timestamp(Instant::now(), |_, _| Outcome::NotExecuted(Error::SchedTooBusy));
        assert_eq!(refused, Outcome::NotExecuted(Error::SchedTooBusy));
    }

    #[test]
    fn a_clock_that_jumps_back_changes_nothing() {
        let mut window = Window { next: 100, limit: 200 };
        assert_eq!(window.take(150), Some(150));
        assert_eq!(window.take(10), Some(151));
        assert_eq!(window.take(200), None);
    }
}
