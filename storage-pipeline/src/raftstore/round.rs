//! A round of a peer: everything that raft asks for at one time, with one log write and one sync for all of it. Pure but
//! for the log, which it writes.

use raft::{
    StateRole,
    eraftpb::{Entry, HardState},
};

use crate::{
    apply::task::ApplyTask,
    engine::EngineError,
    error::{Cause, Outcome},
    observe::{FailPoint, Moment},
    raftstore::peer::{Effects, Peer},
    scheduler::task::Settled,
};

impl Peer {
    /// Does everything that raft asks for now. One log write and one sync cover all that was proposed before.
    ///
    /// # Errors
    /// The log's refusal. The peer must not be used any more: raft has not been told.
    pub(crate) fn round(&mut self, effects: &mut Effects) -> Result<(), EngineError> {
        self.ask_reads();
        while self.node.has_ready() && self.applying_bytes < self.most_applying_bytes {
            let mut ready = self.node.ready();
            // What is confirmed here was asked in the term that this replica led until now: the others are answered as
            // soon as the role changes.
            let term = self.leads.unwrap_or(0);
            for state in ready.take_read_states() {
                self.reads.confirm(&state.request_ctx, state.index, term);
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

    /// The round at a close: what was proposed goes to apply however far that lags, because nobody will report its
    /// progress. The bound of commands in flight bounds this too.
    ///
    /// # Errors
    /// As [`round`](Self::round).
    pub(crate) fn last_round(&mut self, effects: &mut Effects) -> Result<(), EngineError> {
        if self.proposals.is_empty() {
            return Ok(());
        }
        self.most_applying_bytes = usize::MAX;
        self.round(effects)
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
    pub(super) fn release_reads(&mut self, effects: &mut Effects) {
        effects.readable.extend(self.reads.take_applied(self.applied));
    }
}
