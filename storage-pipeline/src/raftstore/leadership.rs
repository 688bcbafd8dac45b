//! What a peer does about who leads: it counts time, gives votes or withholds them, renews its lease, and answers
//! everybody when its leadership ends. Pure.

use std::time::Instant;

use raft::{
    CAMPAIGN_TRANSFER, SnapshotStatus, StateRole,
    eraftpb::{HardState, Message, MessageType},
};

use crate::{
    engine::EngineError,
    error::{Cause, Error, Outcome},
    planted::planted,
    raftstore::{
        peer::{Effects, Peer},
        plausible,
        status::{ReplicaStatus, Role},
    },
    scheduler::task::{Job, Settled},
};

impl Peer {
    /// Takes a message of another replica, which was checked.
    ///
    /// # Errors
    /// The data engine's refusal to keep a snapshot; or this replica has lost what it had acknowledged.
    pub(crate) fn step(&mut self, message: Message) -> Result<(), EngineError> {
        let kind = message.get_msg_type();
        let asks_for_a_vote = matches!(kind, MessageType::MsgRequestVote | MessageType::MsgRequestPreVote);
        // A candidate whom the leader itself told to take over asks for nothing that was promised.
        let is_wanted = message.context == CAMPAIGN_TRANSFER;
        if asks_for_a_vote && !is_wanted && self.ticks_to_vote > 0 && !self.is_only_voter() {
            return Ok(());
        }
        let (term, last_index) = (self.node.raft.term, self.node.raft.raft_log.last_index());
        if plausible::tells_of_a_loss(&message, term, last_index) {
            let Message { from, commit, .. } = message;
            let what = format!(
                "replica {from} counts on entry {commit}, and the log ends at {last_index}: it has lost a part"
            );
            return Err(EngineError::new(what));
        }
        if plausible::acknowledges_too_much(&message, term, last_index) {
            tracing::error!(
                from = message.from,
                index = message.index,
                "entries are acknowledged that were never sent"
            );
            return Ok(());
        }
        let is_snapshot = kind == MessageType::MsgSnapshot;
        if is_snapshot
            && (self.node.snap().is_some() || !self.node.store().has_arrived(message.get_snapshot())?)
        {
            return Ok(());
        }
        let (from, sent_in) = (message.from, message.term);
        self.hear(from);
        if self.is_full() && kind == MessageType::MsgAppend && !message.entries.is_empty() {
            // Raft hands apply an entry or two in each round however far that lags, and these would be rounds of their own. The
            // leader sends them again once it hears that they are missing.
            return Ok(());
        }
        if let Err(error) = self.node.step(message) {
            tracing::debug!(%error, ?kind, "raft does not take a message");
        }
        let raft = &self.node.raft;
        if raft.leader_id == from && raft.term == sent_in {
            // The answer lets the leader count on this replica. Raft would forget that with the term, and any message may end
            // the term: an old refusal of this replica's own wish to be elected, say.
            self.ticks_to_vote = self.ticks_to_vote.max(raft.election_timeout());
        }
        if is_snapshot && self.node.snap().is_none() {
            self.node.store().discard_arrived()?;
        }
        Ok(())
    }

    /// A snapshot was sent to a replica, which took all of it or did not.
    pub(crate) fn snapshot_sent(&mut self, to: u64, taken: bool) {
        let status = if taken { SnapshotStatus::Finish } else { SnapshotStatus::Failure };
        self.node.report_snapshot(to, status);
    }

    /// Asks another voter to take over. Nothing is proposed meanwhile; if nothing comes of it within an election timeout,
    /// this replica goes on leading.
    pub(crate) fn transfer_leader(&mut self, to: u64) {
        if self.is_leading() {
            self.node.transfer_leader(to);
        }
    }

    /// One tick of raft's clock. `now` was read before it.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.now = now;
        self.ticks += 1;
        self.ticks_to_vote = self.ticks_to_vote.saturating_sub(1);
        self.node.tick();
        if !self.is_leading() {
            return;
        }
        if self.is_only_voter() {
            // A round to a quorum of one is acknowledged as it is sent.
            self.lease.acknowledged(now);
        } else if self.ticks_to_question > 0 {
            self.ticks_to_question -= 1;
        } else if self.ask() {
            self.ticks_to_question = self.node.raft.heartbeat_timeout() - 1;
        }
    }

    /// The term that raft says this replica leads.
    pub(crate) fn led_term(&self) -> Option<u64> {
        (self.node.raft.state == StateRole::Leader).then_some(self.node.raft.term)
    }

    /// Leadership of a term began or ended.
    pub(super) fn follow_role(&mut self, effects: &mut Effects) {
        let leads = self.led_term();
        if leads == self.leads {
            return;
        }
        self.leads = leads;
        self.ticks_to_question = 0;
        self.led_since = self.ticks;
        self.heard.clear();
        self.lease.leads(leads);
        self.commit_what_was_applied();
        // Their entries may still be committed by a later leader: nobody here knows, and a snapshot of a later term
        // needs an applied entry of that term, which comes after them.
        let lost = if planted!(MatchByIndexOnly) { Vec::new() } else { self.proposals.take_all() };
        for pending in lost {
            if planted!(LostOnStepDown) {
                std::mem::forget(pending);
                continue;
            }
            let reply = Outcome::Indeterminate(Cause::LeadershipLost);
            effects.settled.push(Settled::without_entry(pending.task, reply));
        }
        self.leave_changes(effects);
        let unconfirmed = self.reads.take_unconfirmed();
        self.refuse_reads(unconfirmed, effects);
    }

    /// Sends reads to whoever leads.
    pub(super) fn refuse_reads(&self, reads: impl IntoIterator<Item = Job>, effects: &mut Effects) {
        let refused = reads.into_iter().map(|job| Settled::not_executed(job.task, self.not_leader()));
        effects.settled.extend(refused);
    }

    /// Whether a hard state holds a term or a vote that the log does not.
    pub(super) fn is_new_vote(&self, new: Option<&HardState>) -> bool {
        let kept = self.node.store().hard_state();
        new.is_some_and(|new| (new.term, new.vote) != (kept.term, kept.vote))
    }

    /// What was applied before the start is committed, and raft would learn that only with the first entry of its own term.
    /// It could wait for that for ever: whoever has to acknowledge the entry may need a snapshot, and one waits until
    /// changes of members are applied again.
    fn commit_what_was_applied(&mut self) {
        let known = self.known_to_be_committed();
        if self.leads.is_some() && known > self.node.raft.raft_log.committed {
            self.node.raft.raft_log.commit_to(known);
        }
    }

    /// Whatever raft knows of it.
    pub(crate) fn known_to_be_committed(&self) -> u64 {
        self.node.store().applied_before()
    }

    /// Asks raft to confirm the leadership, for whoever waits and for the lease. Before an entry of its own term is
    /// committed raft would drop the question without a word, so reads are kept until then.
    pub(super) fn ask(&mut self) -> bool {
        let answers = self.is_leading() && self.node.raft.commit_to_current_term();
        if answers {
            let question = self.reads.ask();
            // The last tick came before the question leaves, so the lease ends too early rather than too late.
            self.lease.asked(question, self.now);
            self.node.read_index(question.to_be_bytes().to_vec());
        }
        answers
    }

    /// Asks raft to confirm the leadership for the reads that wait for that.
    pub(super) fn ask_reads(&mut self) {
        if self.reads.has_unasked() {
            self.ask();
        }
    }

    /// What this replica knows of its group.
    pub(crate) fn status(&self) -> ReplicaStatus {
        let raft = &self.node.raft;
        let role = match raft.state {
            StateRole::Leader => Role::Leader,
            StateRole::Follower => Role::Follower,
            StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
        };
        let leader = Some(raft.leader_id).filter(|id| *id != raft::INVALID_ID);
        ReplicaStatus { replica: raft.id, role, term: raft.term, leader }
    }

    /// Whether this replica leads in raft's eyes and has followed raft in that.
    pub(super) fn is_leading(&self) -> bool {
        self.leads.is_some() && self.led_term() == self.leads
    }

    pub(super) fn is_only_voter(&self) -> bool {
        let raft = &self.node.raft;
        raft.promotable() && raft.prs().is_singleton()
    }

    pub(super) fn not_leader(&self) -> Error {
        let leader =
            Some(self.node.raft.leader_id).filter(|id| *id != raft::INVALID_ID && self.leads.is_none());
        Error::NotLeader { leader }
    }
}
