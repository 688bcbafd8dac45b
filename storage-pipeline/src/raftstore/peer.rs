//! One replica of one raft group: decides what raft's answers mean for proposals, reads and the lease. It knows no
//! thread, channel or clock; what is to be done is returned as [`Effects`].

use std::time::Instant;

use raft::{
    RawNode, StateRole,
    eraftpb::{Entry, HardState},
};

use crate::{
    apply::task::ApplyTask,
    engine::EngineError,
    error::{Cause, Error, Outcome},
    local_reader::lease::{Lease, LeaseTracker},
    observe::{FailPoint, Moment, Observer},
    raftstore::{
        log_storage::LogStorage,
        msg::{ApplyRes, Proposal},
        proposals::{Pending, Proposals},
        reads::Reads,
    },
    scheduler::task::{Job, Settled},
};

/// What a peer wants done, in the order of the fields.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Committed entries for the apply pool.
    pub(crate) apply: Vec<ApplyTask>,
    /// Commands whose fate is known without an applied entry.
    pub(crate) settled: Vec<Settled>,
    /// Reads that may have their snapshot, with the term in which leadership was confirmed.
    pub(crate) readable: Vec<(Job, u64)>,
}

/// A replica.
pub(crate) struct Peer {
    node: RawNode<LogStorage>,
    proposals: Proposals,
    reads: Reads,
    lease: LeaseTracker,
    /// The term that this replica leads.
    leads: Option<u64>,
    applied: u64,
    /// Bytes of entries that apply has and has not reported yet.
    applying_bytes: usize,
    most_applying_bytes: usize,
    observer: Observer,
}

impl Peer {
    pub(crate) fn new(
        node: RawNode<LogStorage>,
        lease: LeaseTracker,
        most_applying_bytes: usize,
        observer: Observer,
    ) -> Self {
        let applied = node.raft.raft_log.applied;
        let (proposals, reads) = (Proposals::default(), Reads::default());
        Self {
            node,
            proposals,
            reads,
            lease,
            leads: None,
            applied,
            applying_bytes: 0,
            most_applying_bytes,
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
        let mut refuse = |task, error| {
            effects.settled.push(Settled::without_entry(task, Outcome::NotExecuted(error)));
        };
        if self.leads != Some(term) || self.node.raft.term != term {
            return refuse(task, self.not_leader());
        }
        self.observer.note(Moment::Proposing { cid });
        if !task.context().phase.propose() {
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
        self.observer.note(Moment::Proposed { cid, index: last + 1, term });
        self.proposals.push(Pending { task, index: last + 1, term, response });
    }

    /// Takes a read that needs a confirmation of leadership.
    pub(crate) fn read(&mut self, job: Job, effects: &mut Effects) {
        if self.leads.is_none() || self.observer.fails(FailPoint::RaftDropsRead) {
            let reply = Outcome::NotExecuted(self.not_leader());
            effects.settled.push(Settled::without_entry(job.task, reply));
        } else {
            self.reads.push(job);
        }
    }

    /// One tick of raft's clock. `now` was read before it.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.node.tick();
        if self.leads.is_some() && self.is_only_voter() {
            // A round to a quorum of one is acknowledged as it is sent.
            self.lease.acknowledged(now);
        }
    }

    /// Apply got this far.
    pub(crate) fn applied(&mut self, res: ApplyRes, effects: &mut Effects) {
        self.applied = res.index;
        self.applying_bytes = self.applying_bytes.saturating_sub(res.bytes);
        self.node.advance_apply_to(res.index);
        if self.leads == Some(res.term) {
            self.lease.own_term_applied();
        }
        self.release_reads(effects);
    }

    /// Forgets log entries up to an index whose data is synced.
    pub(crate) fn truncate(&mut self, index: u64) -> Result<(), EngineError> {
        let index = index.min(self.applied);
        self.node.mut_store().compact(index)
    }

    /// Does everything that raft asks for now. One log write and one sync cover all that was proposed before.
    ///
    /// # Errors
    /// The log's refusal. The peer must not be used any more: raft has not been told.
    pub(crate) fn round(&mut self, effects: &mut Effects) -> Result<(), EngineError> {
        self.ask_reads();
        while self.node.has_ready() && self.applying_bytes < self.most_applying_bytes {
            let mut ready = self.node.ready();
            for state in ready.take_read_states() {
                self.reads.confirm(&state.request_ctx, state.index);
            }
            self.commit(ready.take_committed_entries(), effects);
            let (entries, hard_state) = (ready.take_entries(), ready.hs().cloned());
            self.persist(entries, hard_state, ready.must_sync())?;
            // With one replica there is nobody to send messages to.
            let mut light = self.node.advance_append(ready);
            self.commit(light.take_committed_entries(), effects);
            // Last, so that entries and confirmations in the same Ready find those who wait for them.
            self.follow_role(effects);
            self.release_reads(effects);
            self.ask_reads();
        }
        Ok(())
    }

    /// The lease as it stands.
    pub(crate) fn lease(&self) -> Option<Lease> {
        self.lease.lease()
    }

    fn persist(
        &mut self,
        entries: Vec<Entry>,
        hard_state: Option<HardState>,
        sync: bool,
    ) -> Result<(), EngineError> {
        if entries.is_empty() && hard_state.is_none() {
            return Ok(());
        }
        self.observer.note(Moment::LogWriting { entries: entries.len() });
        if self.observer.fails(FailPoint::LogWrite) {
            return Err(EngineError::new("injected failure of a log write"));
        }
        self.node.mut_store().persist(entries, hard_state, sync)?;
        let last_index = self.node.raft.raft_log.last_index();
        self.observer.note(Moment::LogWritten { last_index, synced: sync });
        Ok(())
    }

    /// Hands committed entries to apply, with every proposal whose place they reach.
    fn commit(&mut self, entries: Vec<Entry>, effects: &mut Effects) {
        let Some(last) = entries.last().map(|entry| entry.index) else { return };
        let bytes = entries.iter().map(|entry| entry.data.len() + size_of::<Entry>()).sum();
        self.applying_bytes += bytes;
        effects.apply.push(ApplyTask { entries, proposals: self.proposals.take_through(last), bytes });
    }

    /// Leadership of a term began or ended.
    fn follow_role(&mut self, effects: &mut Effects) {
        let leads = (self.node.raft.state == StateRole::Leader).then_some(self.node.raft.term);
        if leads == self.leads {
            return;
        }
        self.leads = leads;
        self.lease.leads(leads);
        // Their entries may still be committed by a later leader: nobody here knows, and a snapshot of a later term
        // needs an applied entry of that term, which comes after them.
        for pending in self.proposals.take_all() {
            let reply = Outcome::Indeterminate(Cause::LeadershipLost);
            effects.settled.push(Settled::without_entry(pending.task, reply));
        }
        let not_leader = self.not_leader();
        for job in self.reads.take_unconfirmed() {
            effects.settled.push(Settled::without_entry(job.task, Outcome::NotExecuted(not_leader.clone())));
        }
    }

    /// Asks raft to confirm the leadership. Before an entry of its own term is committed raft would drop the question
    /// without a word, so it is kept until then.
    fn ask_reads(&mut self) {
        if self.reads.has_unasked() && self.leads.is_some() && self.node.raft.commit_to_current_term() {
            let context = self.reads.ask();
            self.node.read_index(context);
        }
    }

    /// Lets confirmed reads go for which apply has come far enough. One that was confirmed under a term that has ended
    /// is still right to read, but nothing may be proposed on it: `propose` compares the terms.
    fn release_reads(&mut self, effects: &mut Effects) {
        let term = self.leads.unwrap_or(self.node.raft.term);
        effects.readable.extend(self.reads.take_applied(self.applied).into_iter().map(|job| (job, term)));
    }

    fn not_leader(&self) -> Error {
        let leader =
            Some(self.node.raft.leader_id).filter(|id| *id != raft::INVALID_ID && self.leads.is_none());
        Error::NotLeader { leader }
    }

    fn is_only_voter(&self) -> bool {
        self.node.raft.prs().conf().to_conf_state().voters == [self.node.raft.id]
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
