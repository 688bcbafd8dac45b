//! How long a thread stays awake for its next write. Waking a sleeping thread costs a lone writer more than the work
//! that the thread then does, so one that is written to again and again in short gaps yields for a bounded time before it
//! sleeps. It decides on numbers alone; `stay_awake` acts.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::mailbox::Mailbox;

/// Writes that come together, at most, for staying awake to be worth it. Where more come, the thread's own work fills
/// its time, and the processor is better left to those who send.
const FEW_WRITES: usize = 2;

/// Commands in flight, at most, for staying awake to be worth it. Where there are more, the next write comes soon enough, and
/// others have a use for the processor: many clients' writes can come one by one, too.
const FEW_IN_FLIGHT: usize = 8;

/// What a thread knows of the gaps between its writes.
#[derive(Debug)]
pub(crate) struct Patience {
    /// The longest that the thread stays awake for nothing, and the longest gap after which it tries.
    bound: Duration,
    /// When it was done with its last writes.
    idle_since: Instant,
    /// Whether it has writes that it is not done with.
    has_writes: bool,
    /// Whether staying awake after the last writes would have been rewarded.
    is_rewarded: bool,
}

impl Patience {
    pub(crate) fn new(bound: Duration, now: Instant) -> Self {
        Self { bound, idle_since: now, has_writes: false, is_rewarded: false }
    }

    /// Messages came, this many writes among them, while so many commands are in flight. The other messages tell nothing about
    /// the next write.
    pub(crate) fn received(&mut self, writes: usize, in_flight: usize, now: Instant) {
        if writes > 0 {
            let gap = now.saturating_duration_since(self.idle_since);
            let are_few = writes <= FEW_WRITES && in_flight <= FEW_IN_FLIGHT;
            self.is_rewarded = gap < self.bound && are_few;
            self.has_writes = true;
        }
    }

    /// The thread has done what it was sent.
    pub(crate) fn done(&mut self, now: Instant) {
        if self.has_writes {
            self.idle_since = now;
            self.has_writes = false;
        }
    }

    /// Until when the thread is to stay awake, if it is.
    fn awake_until(&self) -> Option<Instant> {
        self.is_rewarded.then(|| self.idle_since + self.bound)
    }

    /// Yields the processor to others until there is a message or patience ends; at once where none is due.
    pub(crate) fn stay_awake<T>(&self, mailbox: &Mailbox<T>) {
        let Some(until) = self.awake_until() else { return };
        while mailbox.is_empty() && Instant::now() < until {
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_micros(500);
    const SHORT: Duration = Duration::from_micros(100);

    /// A thread that was sent `writes` after each of the gaps, with nothing else in flight, and was done with them at once.
    fn after(gaps: &[(Duration, usize)], bound: Duration) -> (Patience, Instant) {
        among(0, gaps, bound)
    }

    /// The same with so many others in flight.
    fn among(others: usize, gaps: &[(Duration, usize)], bound: Duration) -> (Patience, Instant) {
        let mut now = Instant::now();
        let mut patience = Patience::new(bound, now);
        now += Duration::from_secs(1);
        for (gap, writes) in gaps {
            now += *gap;
            patience.received(*writes, writes + others, now);
            patience.done(now);
        }
        (patience, now)
    }

    #[test]
    fn a_thread_stays_awake_only_where_the_last_gap_was_short_and_few_writes_came() {
        let long = BOUND * 2;
        let awake = |gaps: &[(Duration, usize)]| after(gaps, BOUND).0.awake_until().is_some();
        assert!(!awake(&[]));
        assert!(!awake(&[(long, 1)]), "the first after a pause");
        assert!(awake(&[(long, 1), (SHORT, 1)]));
        assert!(awake(&[(long, 1), (SHORT, FEW_WRITES)]));
        assert!(!awake(&[(long, 1), (SHORT, FEW_WRITES + 1)]), "a crowd");
        assert!(!awake(&[(long, 1), (SHORT, 1), (long, 1)]), "its writer has slowed down");
        assert!(!awake(&[(long, 1), (BOUND, 1)]), "a gap as long as the bound is no short one");
    }

    #[test]
    fn a_thread_sleeps_where_many_are_in_flight_however_few_of_them_come_at_a_time() {
        let one_by_one = [(BOUND * 2, 1), (SHORT, 1), (SHORT, 1)];
        let awake = |others| among(others, &one_by_one, BOUND).0.awake_until().is_some();
        assert!(awake(FEW_IN_FLIGHT - 1));
        assert!(!awake(FEW_IN_FLIGHT));
    }

    #[test]
    fn messages_that_are_no_writes_neither_start_nor_prolong_it() {
        let (patience, last_write) = after(&[(BOUND, 1), (SHORT, 1)], BOUND);
        assert_eq!(patience.awake_until(), Some(last_write + BOUND));
        let mut patience = patience;
        patience.received(0, 1, last_write + SHORT);
        patience.done(last_write + SHORT);
        assert_eq!(patience.awake_until(), Some(last_write + BOUND));
    }

    #[test]
    fn a_bound_of_zero_switches_it_off() {
        assert!(after(&[(SHORT, 1), (Duration::ZERO, 1)], Duration::ZERO).0.awake_until().is_none());
    }

    #[test]
    fn it_ends_with_a_message_and_at_the_bound() {
        let bound = Duration::from_millis(20);
        let rewarded =
            || Patience { bound, idle_since: Instant::now(), has_writes: false, is_rewarded: true };
        let mailbox = Mailbox::default();
        let started = Instant::now();
        rewarded().stay_awake(&mailbox);
        assert!(started.elapsed() >= bound);
        mailbox.send(1).unwrap();
        let long = Patience { bound: Duration::from_secs(3600), ..rewarded() };
        long.stay_awake(&mailbox);
        assert_eq!(mailbox.len(), 1, "the message is still to be received");
    }
}
