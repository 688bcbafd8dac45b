//! One replica of one region's raft group: decides what raft's answers mean for proposals, reads and the lease. It knows no
//! thread, channel or clock; what is to be done is returned as [`Effects`].

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use callback_slot::Callback;
use raft::{RawNode, eraftpb::Message};

use crate::{
    apply::task::ApplyTask,
    error::{Error, Outcome},
    local_reader::lease::{Lease, LeaseTracker},
    members::Members,
    observe::{FailPoint, Moment, Observer},
    planted::planted,
    raftstore::{
        log_storage::LogStorage,
        membership::Changes,
        msg::{ApplyRes, Proposal},
        proposals::{Pending, Proposals},
        reads::Reads,
        round::Begun,
        snapshot::OutgoingSnapshot,
        transport::Transport,
    },
    region::CurrentRegion,
    scheduler::task::{Job, Settled},
};

/// What a peer wants done, in the order of the fields.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Messages that end this replica's lease. They leave once no reader can find it any more.
    pub(crate) messages: Vec<Message>,
    /// Snapshots for others.
    pub(crate) snapshots: Vec<OutgoingSnapshot>,
    /// Committed entries for the apply pool.
    pub(crate) apply: Vec<ApplyTask>,
    /// Commands whose fate is known without an applied entry.
    pub(crate) settled: Vec<Settled>,
    /// Reads that may have their snapshot, with the term in which leadership was confirmed.
    pub(crate) readable: Vec<(Job, u64)>,
    /// What came of changes of members.
    pub(crate) changed: Vec<(Callback<Outcome<Members>>, Outcome<Members>)>,
}

/// Whom a peer tells of what it does.
pub(crate) struct Outside {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) observer: Observer,
}

/// A replica.
pub(crate) struct Peer {
    pub(super) node: RawNode<LogStorage>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) proposals: Proposals,
    pub(super) reads: Reads,
    pub(super) lease: LeaseTracker,
    /// Ticks since the start, those before this replica led, and for each other replica the tick in which it was heard last
    /// since then.
    pub(super) ticks: u64,
    pub(super) led_since: u64,
    pub(super) heard: BTreeMap<u64, u64>,
    /// The last tick.
    pub(super) now: Instant,
    /// Ticks until the leadership is confirmed once more.
    pub(super) ticks_to_question: usize,
    /// Ticks until this replica votes: it may have promised a leader not to.
    pub(super) ticks_to_vote: usize,
    /// The term that this replica leads.
    pub(super) leads: Option<u64>,
    pub(super) applied: u64,
    /// Bytes of entries that apply has and has not reported yet.
    pub(super) applying_bytes: usize,
    pub(super) most_applying_bytes: usize,
    pub(super) most_committed_bytes: u64,
    pub(super) changes: Changes,
    /// A part of a round that waits for the log.
    pub(super) begun: Option<Begun>,
    /// The region, as far as apply has reported changes of it.
    pub(super) current: CurrentRegion,
    pub(super) observer: Observer,
}

impl Peer {
    /// A replica that has just started, `now`.
    ///
    /// It may have promised a leader not to elect anybody else, and forgets that promise with its process. So one that has
    /// been in a term before gives no vote for as long as the promise can last.
    ///
    /// Apply is given at most `most_committed_bytes` in one task, and eight times that before it has reported.
    pub(crate) fn new(
        current: CurrentRegion,
        node: RawNode<LogStorage>,
        lease: LeaseTracker,
        most_committed_bytes: u64,
        now: Instant,
        outside: Outside,
    ) -> Self {
        let Outside { transport, observer } = outside;
        let raft = &node.raft;
        let ticks_to_vote = if raft.term == 0 || planted!(EarlyVote) { 0 } else { raft.election_timeout() };
        let applied = raft.raft_log.applied;
        let most_applying_bytes =
            usize::try_from(most_committed_bytes).unwrap_or(usize::MAX).saturating_mul(8);
        Self {
            node,
            transport,
            proposals: Proposals::default(),
            reads: Reads::default(),
            lease,
            ticks: 0,
            led_since: 0,
            heard: BTreeMap::new(),
            now,
            ticks_to_question: 0,
            ticks_to_vote,
            leads: None,
            applied,
            applying_bytes: 0,
            most_applying_bytes,
            most_committed_bytes,
            changes: Changes::default(),
            begun: None,
            current,
            observer,
        }
    }

    /// Starts an election at once where this replica is the only voter: nobody else could object.
    pub(crate) fn campaign_alone(&mut self) -> Result<(), raft::Error> {
        if self.is_only_voter() { self.node.campaign() } else { Ok(()) }
    }

    /// Hands a change to raft, or settles it as never proposed.
    pub(crate) fn propose(&mut self, proposal: Proposal, effects: &mut Effects) {
        let Proposal { task, term, data, response } = proposal;
        let cid = task.context().cid;
        let mut refuse = |task, error| effects.settled.push(Settled::not_executed(task, error));
        // What was decided on a snapshot may only be proposed by the leader that took it. What needed none is as right
        // in whatever term this replica leads.
        let led = self.leads.filter(|led| {
            self.is_leading() && term.is_none_or(|term| term == *led || planted!(SnapshotOfAnyTerm))
        });
        let Some(term) = led else { return refuse(task, self.not_leader()) };
        if let Err(error) = self.check_epoch(task.context().epoch) {
            return refuse(task, error);
        }
        self.observer.note(Moment::Proposing { cid });
        if !task.context().phase.propose() && !planted!(BrokenPromise) {
            // Somebody promised the caller that it never runs. What it is told here arrives too late to be heard.
            return refuse(task, Error::DeadlineExceeded);
        }
        let last = self.node.raft.raft_log.last_index();
        let dropped = self.observer.fails(FailPoint::RaftDropsProposal)
            || self.node.propose(Vec::new(), data).is_err()
            || self.node.raft.raft_log.last_index() != last + 1;
        if dropped {
            return refuse(task, self.not_leader());
        }
        self.observer.note(Moment::Proposed { cid, region: self.region(), index: last + 1, term });
        self.proposals.push(Pending { task, index: last + 1, term, response });
    }

    /// Takes a read that needs a confirmation of leadership.
    pub(crate) fn read(&mut self, job: Job, effects: &mut Effects) {
        if self.leads.is_none() || self.observer.fails(FailPoint::RaftDropsRead) {
            effects.settled.push(Settled::not_executed(job.task, self.not_leader()));
        } else if let Some(term) = self.leads.filter(|_| planted!(ReadWithoutQuorum)) {
            effects.readable.push((job, term));
        } else {
            self.reads.push(job);
        }
    }

    /// Apply got this far.
    pub(crate) fn applied(&mut self, res: ApplyRes, effects: &mut Effects) {
        self.applied = res.index;
        self.applying_bytes = self.applying_bytes.saturating_sub(res.bytes);
        self.current.epoch.conf_ver = res.conf_ver;
        self.members_changed(res.changes, effects);
        if self.leads == Some(res.term) {
            self.lease.own_term_applied();
        }
        self.release_reads(effects);
    }

    /// Whether apply has twice as much before it as it should, so that nothing more is taken from a leader.
    pub(super) fn is_full(&self) -> bool {
        self.applying_bytes / 2 >= self.most_applying_bytes
    }

    /// Whether something waits for apply: a read, a round that was put off, or the first lease of a term.
    pub(crate) fn awaits_apply(&self) -> bool {
        self.reads.await_apply()
            || self.applying_bytes >= self.most_applying_bytes
            || self.changes.is_awaited()
            || (self.leads.is_some() && !self.lease.has_own_term_applied())
    }

    /// Lets confirmed reads go for which apply has come far enough. One that was confirmed under a term that has ended
    /// is still right to read, but nothing may be proposed on it: `propose` compares the terms.
    pub(super) fn release_reads(&mut self, effects: &mut Effects) {
        let applied = if planted!(ReadsUnapplied) { u64::MAX } else { self.applied };
        effects.readable.extend(self.reads.take_applied(applied));
    }

    /// Sends what had to wait for the effects before it.
    pub(crate) fn send_withheld(&self, messages: Vec<Message>) {
        if !messages.is_empty() {
            self.transport.send(self.region(), messages);
        }
    }

    /// Id of the region.
    pub(crate) fn region(&self) -> u64 {
        self.current.region.id
    }

    /// The way to the other replicas.
    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport)
    }

    /// The lease as it stands.
    pub(crate) fn lease(&self) -> Option<Lease> {
        self.lease.lease()
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
