//! The leader's lease: how long this replica may read without asking a quorum. Pure but for the cell that shares it.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{planted::planted, primitive::Mutex};

/// A promise of a quorum not to elect anybody else until a moment, for one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) term: u64,
    pub(crate) until: Instant,
}

/// Where the raftstore publishes the lease and every reader looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLease(Arc<Mutex<Option<Lease>>>);

impl SharedLease {
    /// The term whose lease is valid at this moment.
    pub(crate) fn term_at(&self, now: Instant) -> Option<u64> {
        let lease = *self.0.lock();
        lease.filter(|lease| now < lease.until).map(|lease| lease.term)
    }

    /// The term that has a lease, valid or not.
    pub(crate) fn term(&self) -> Option<u64> {
        self.0.lock().map(|lease| lease.term)
    }

    pub(crate) fn publish(&self, lease: Option<Lease>) {
        *self.0.lock() = lease;
    }
}

/// Derives the lease from acknowledged heartbeat rounds. It knows no clock: every moment is given to it.
///
/// A lease runs from the moment at which the round was *sent*: an acknowledgement says only that a follower had heard
/// of the leader after that. It exists once an entry of the leader's own term is applied, since only then does a
/// snapshot hold all that earlier terms acknowledged.
#[derive(Debug)]
pub(crate) struct LeaseTracker {
    length: Duration,
    term: u64,
    /// Rounds that are not acknowledged yet: their numbers, and when they were sent.
    asked: VecDeque<(u64, Instant)>,
    acknowledged: Option<Instant>,
    own_term_applied: bool,
    suspended: bool,
}

impl LeaseTracker {
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            length,
            term: 0,
            asked: VecDeque::new(),
            acknowledged: None,
            own_term_applied: false,
            suspended: false,
        }
    }

    /// Leadership of a term began, or ended with `None`. Nothing of an earlier term counts any more.
    pub(crate) fn leads(&mut self, term: Option<u64>) {
        *self = Self { term: term.unwrap_or(0), ..Self::new(self.length) };
    }

    /// An entry of the led term is applied.
    pub(crate) fn own_term_applied(&mut self) {
        self.own_term_applied = true;
    }

    pub(crate) fn has_own_term_applied(&self) -> bool {
        self.own_term_applied
    }

    /// A round that asks every replica whether this one leads is sent, not before this moment.
    pub(crate) fn asked(&mut self, round: u64, sent: Instant) {
        self.asked.push_back((round, sent));
    }

    /// A quorum answered this round. That answers earlier ones too, whose own answers may be lost.
    pub(crate) fn confirmed(&mut self, round: u64) {
        let count = self.asked.partition_point(|(asked, _)| *asked <= round);
        let last = self.asked.drain(..count).next_back();
        if let Some((_, sent)) = last {
            self.acknowledged(sent);
        }
    }

    /// Another replica was told to take over without waiting for anybody's promise: there is no lease for the rest of
    /// the term, even if nothing comes of it.
    pub(crate) fn suspend(&mut self) {
        self.suspended = true;
    }

    /// A quorum answered the round sent at this moment.
    pub(crate) fn acknowledged(&mut self, sent: Instant) {
        self.acknowledged = self.acknowledged.max(Some(sent));
    }

    pub(crate) fn lease(&self) -> Option<Lease> {
        let begins = self.own_term_applied || planted!(LeaseBeforeOwnTerm);
        let sent = self.acknowledged.filter(|_| self.term != 0 && begins && !self.suspended)?;
        let length = if planted!(EndlessLease) { self.length * 100 } else { self.length };
        Some(Lease { term: self.term, until: sent + length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_millis(800);

    fn leader(term: u64) -> LeaseTracker {
        let mut tracker = LeaseTracker::new(LENGTH);
        tracker.leads(Some(term));
        tracker
    }

    #[test]
    fn it_runs_from_the_sending_and_needs_an_own_entry() {
        let sent = Instant::now();
        let mut tracker = leader(3);
        tracker.acknowledged(sent);
        assert_eq!(tracker.lease(), None, "no entry of its own term is applied");
        tracker.own_term_applied();
        assert_eq!(tracker.lease(), Some(Lease { term: 3, until: sent + LENGTH }));
    }

    #[test]
    fn a_late_answer_to_an_early_round_does_not_shorten_it() {
        let sent = Instant::now();
        let mut tracker = leader(3);
        tracker.own_term_applied();
        tracker.acknowledged(sent + LENGTH);
        tracker.acknowledged(sent);
        assert_eq!(tracker.lease().map(|lease| lease.until), Some(sent + 2 * LENGTH));
    }

    #[test]
    fn nothing_of_an_earlier_term_counts() {
        let mut tracker = leader(3);
        tracker.own_term_applied();
        tracker.acknowledged(Instant::now());
        tracker.leads(Some(4));
        assert_eq!(tracker.lease(), None);
        tracker.acknowledged(Instant::now());
        assert_eq!(tracker.lease(), None);
        tracker.leads(None);
        tracker.own_term_applied();
        tracker.acknowledged(Instant::now());
        assert_eq!(tracker.lease(), None, "who does not lead has no lease");
    }

    #[test]
    fn a_later_answer_confirms_earlier_rounds_and_counts_from_its_own_sending() {
        let sent = Instant::now();
        let mut tracker = leader(3);
        tracker.own_term_applied();
        for round in 1..=3 {
            tracker.asked(round, sent + LENGTH * round as u32);
        }
        tracker.confirmed(2);
        assert_eq!(tracker.lease().map(|lease| lease.until), Some(sent + 3 * LENGTH));
        tracker.confirmed(1);
        assert_eq!(tracker.lease().map(|lease| lease.until), Some(sent + 3 * LENGTH));
        tracker.leads(Some(4));
        tracker.own_term_applied();
        tracker.confirmed(3);
        assert_eq!(tracker.lease(), None, "it was asked in an earlier term");
    }

    #[test]
    fn once_another_one_was_told_to_take_over_the_term_has_no_lease() {
        let mut tracker = leader(3);
        tracker.own_term_applied();
        tracker.acknowledged(Instant::now());
        tracker.suspend();
        tracker.acknowledged(Instant::now());
        assert_eq!(tracker.lease(), None);
        tracker.leads(Some(4));
        tracker.own_term_applied();
        tracker.acknowledged(Instant::now());
        assert!(tracker.lease().is_some());
    }

    #[test]
    fn a_reader_sees_it_end() {
        let now = Instant::now();
        let shared = SharedLease::default();
        assert_eq!(shared.term_at(now), None);
        shared.publish(Some(Lease { term: 7, until: now + LENGTH }));
        assert_eq!(shared.term_at(now), Some(7));
        assert_eq!(shared.term_at(now + LENGTH), None);
        shared.publish(None);
        assert_eq!(shared.term_at(now), None);
    }
}
