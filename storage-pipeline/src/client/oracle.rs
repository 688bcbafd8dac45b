//! The timestamp oracle: hands out timestamps from a window whose end is replicated before any of it is used. A window
//! belongs to the term of the leader that had it replicated: another leader may have given out later ones since.

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
    /// What must hold for the window to be used; nothing that can hold, where only its first timestamp may be.
    fence: Option<u64>,
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
    ///
    /// `fence` says in which term, if any, this replica surely leads now. It is asked after the timestamp was taken: who
    /// leads then led while it was taken, and nobody else gave out a later one before.
    pub(crate) fn at_hand(&self, fence: impl Fn() -> Option<u64>) -> Option<u64> {
        let mut window = self.window.lock();
        let bound_to = window.fence;
        let timestamp = window.take(wall_clock());
        drop(window);
        timestamp.filter(|_| bound_to.is_some() && bound_to == fence())
    }

    /// The next timestamp. `extend` replicates a new end of the window: it gets the least timestamp that is of use and
    /// how many are wanted. Waits for another's extension at most until a moment.
    pub(crate) fn timestamp(
        &self,
        until: Instant,
        fence: impl Fn() -> Option<u64>,
        extend: impl Fn(u64, u64) -> Outcome<TimestampRange>,
    ) -> Outcome<u64> {
        if let Some(timestamp) = self.at_hand(&fence) {
            return Outcome::Applied(timestamp);
        }
        let Some(_extending) = self.extending.try_lock_until(until) else {
            return Outcome::NotExecuted(Error::DeadlineExceeded);
        };
        if let Some(timestamp) = self.at_hand(&fence) {
            return Outcome::Applied(timestamp);
        }
        let now = wall_clock();
        let wanted = self.window.lock().wanted(now);
        let before = fence();
        extend(now, wanted).map(|TimestampRange { first, limit }| {
            // It was replicated in a term that this replica led meanwhile. Which one is sure only where it led the same
            // one before and after.
            let fence = before.filter(|term| fence() == Some(*term));
            *self.window.lock() = Window { next: first + 1, limit, fence };
            // The first one needs no fence: it was replicated after this call began.
            first
        })
    }
}

/// The wall clock as a timestamp. It may jump back: the window does not.
pub(crate) fn wall_clock() -> u64 {
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
            let Outcome::Applied(next) = oracle.timestamp(Instant::now(), || Some(1), extend) else {
                panic!("the window can be extended")
            };
            assert!(next > last && next < bound.get());
            last = next;
        }
    }

    #[test]
    fn a_window_that_cannot_be_extended_gives_nothing_out() {
        let oracle = TimestampOracle::default();
        let refused =
            oracle.timestamp(Instant::now(), || Some(1), |_, _| Outcome::NotExecuted(Error::SchedTooBusy));
        assert_eq!(refused, Outcome::NotExecuted(Error::SchedTooBusy));
    }

    #[test]
    fn a_window_is_used_in_the_term_it_was_replicated_in_and_no_other() {
        let (term, bound) = (Cell::new(Some(1)), Cell::new(0));
        let extensions = Cell::new(0);
        // Windows that the clock does not come to the end of, however slow the machine is: only a term ends them.
        let window = timestamp::compose(24 * 60 * 60 * 1000, 0);
        let extend = |at_least: u64, _| {
            let first = at_least.max(bound.get());
            bound.set(first + window);
            extensions.set(extensions.get() + 1);
            Outcome::Applied(TimestampRange { first, limit: first + window })
        };
        let oracle = TimestampOracle::default();
        let mut last = 0;
        // The lease of term 1 ends, another leader gives out timestamps, and this one leads again later.
        for (now, extended) in [(Some(1), 1), (Some(1), 1), (None, 2), (None, 3), (Some(3), 4), (Some(3), 4)]
        {
            term.set(now);
            assert_eq!(oracle.at_hand(|| None), None);
            let Outcome::Applied(next) = oracle.timestamp(Instant::now(), || term.get(), extend) else {
                panic!("the window can be extended")
            };
            assert!(next > last);
            last = next;
            assert_eq!(extensions.get(), extended, "{now:?}");
            if now.is_none() {
                bound.set(bound.get() + 1000);
                last = bound.get() - 1;
            }
        }
    }

    #[test]
    fn a_clock_that_jumps_back_changes_nothing() {
        let mut window = Window { next: 100, limit: 200, fence: Some(1) };
        assert_eq!(window.take(150), Some(150));
        assert_eq!(window.take(10), Some(151));
        assert_eq!(window.take(200), None);
    }
}
