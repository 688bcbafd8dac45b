//! A round of a peer: everything that raft asks for at one time, with one log write and one sync for all of it. Pure but
//! for the log, which it writes.

use raft::eraftpb::{Entry, HardState, Message, MessageType, Snapshot};

use crate::{
    apply::task::ApplyTask,
    engine::EngineError,
    error::{Cause, Outcome},
    observe::{FailPoint, Moment},
    planted::planted,
    raftstore::{
        peer::{Effects, Peer},
        snapshot::{self, OutgoingSnapshot},
    },
    scheduler::task::Settled,
};

/// Most bytes of keys and values in one chunk of a snapshot. Where apply is given less at a time, that is the bound.
const CHUNK_BYTES: u64 = 256 << 10;

impl Peer {
    /// Does everything that raft asks for now. One log write and one sync cover all that was proposed before.
    ///
    /// # Errors
    /// The log's refusal. The peer must not be used any more: raft has not been told.
    pub(crate) fn round(&mut self, effects: &mut Effects) -> Result<(), EngineError> {
        self.ask_reads();
        while self.has_work() {
            let mut ready = self.node.ready();
            // What is confirmed here was asked in the term that this replica led until now: the others are answered as
            // soon as the role changes.
            let term = self.leads.unwrap_or(0);
            for state in ready.take_read_states() {
                let Ok(question) = state.request_ctx.try_into().map(u64::from_be_bytes) else { continue };
                self.reads.confirm(question, state.index, term);
                self.lease.confirmed(question);
            }
            // A leader's entries leave for the others while its own disk works on them.
            let (at_once, mut once_durable) = (ready.take_messages(), ready.take_persisted_messages());
            let (entries, hard_state) = (ready.take_entries(), ready.hs().cloned());
            if at_once.is_empty() || self.is_new_vote(hard_state.as_ref()) {
                // A replica that elects itself alone leads before its vote is durable. It must not speak in a term that
                // a crash makes it forget, and begin a second time.
                once_durable.extend(at_once);
            } else {
                self.send(at_once, effects);
            }
            if planted!(AcknowledgesEarly) {
                self.send(std::mem::take(&mut once_durable), effects);
            }
            self.commit(ready.take_committed_entries(), effects);
            if ready.snapshot().is_empty() {
                self.persist(entries, hard_state, ready.must_sync())?;
            } else {
                self.restart(ready.snapshot(), entries, hard_state, effects)?;
            }
            self.send(once_durable, effects);
            let mut light = self.node.advance_append(ready);
            if let Some(commit) = light.commit_index() {
                // An only voter commits by its own write. No hard state tells of that later.
                self.node.mut_store().committed(commit);
            }
            self.skip_to_snapshot();
            self.send(light.take_messages(), effects);
            self.commit(light.take_committed_entries(), effects);
            // Last, so that entries and confirmations in the same Ready find those who wait for them.
            self.follow_role(effects);
            self.release_reads(effects);
            self.ask_reads();
        }
        Ok(())
    }

    /// Whether raft asks for something that is to be done now. Where apply is behind by its bound that is only what others
    /// wait for: messages, entries that they count on, a role that is lost. Committed entries then stay in the log, but
    /// for one or two in each `Ready`, which raft always adds.
    fn has_work(&mut self) -> bool {
        let lags = self.applying_bytes >= self.most_applying_bytes;
        let raft = &mut self.node.raft;
        raft.set_max_committed_size_per_ready(if lags { 0 } else { self.most_committed_bytes });
        if !lags {
            return self.node.has_ready();
        }
        let is_new_term = raft.term != raft.store().hard_state().term;
        let has_entries = !raft.raft_log.unstable_entries().is_empty();
        !raft.msgs.is_empty()
            || !raft.read_states.is_empty()
            || has_entries
            || raft.raft_log.unstable_snapshot().is_some()
            || is_new_term
            || self.led_term() != self.leads
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

    /// Whether a hard state holds a term or a vote that the log does not.
    fn is_new_vote(&self, new: Option<&HardState>) -> bool {
        let kept = self.node.store().hard_state();
        new.is_some_and(|new| (new.term, new.vote) != (kept.term, kept.vote))
    }

    /// A snapshot takes the place of the log. It is complete and synced beside the data; apply installs it in its turn.
    fn restart(
        &mut self,
        snapshot: &Snapshot,
        entries: Vec<Entry>,
        hard_state: Option<HardState>,
        effects: &mut Effects,
    ) -> Result<(), EngineError> {
        let manifest = snapshot::manifest(snapshot);
        let position = manifest.position;
        self.observer.note(Moment::LogWriting { entries: entries.len() });
        if self.observer.fails(FailPoint::LogWrite) {
            return Err(EngineError::new("injected failure of a log write"));
        }
        self.node.mut_store().restart(position, entries, hard_state)?;
        self.observer.note(Moment::LogWritten { last_index: position.index, synced: true });
        // Whether their entries are among those that the snapshot stands for, nobody here can tell any more.
        for pending in self.proposals.take_through(position.index) {
            let reply = Outcome::Indeterminate(Cause::SnapshotInstalled);
            effects.settled.push(Settled::without_entry(pending.task, reply));
        }
        effects.apply.push(ApplyTask { snapshot: Some(position), ..ApplyTask::default() });
        Ok(())
    }

    /// Raft must not look for entries that a snapshot stands for. Reads wait for apply all the same.
    fn skip_to_snapshot(&mut self) {
        let truncated = self.node.store().truncated_index();
        if truncated > self.node.raft.raft_log.applied {
            self.node.advance_apply_to(truncated);
        }
    }

    /// Sends messages, but for the one that ends a lease: whoever gets it may be elected at once, so the lease has to be
    /// withdrawn from all readers first. Snapshots go with their data to the thread that sends them.
    fn send(&mut self, mut messages: Vec<Message>, effects: &mut Effects) {
        let ends_lease = |message: &Message| message.get_msg_type() == MessageType::MsgTimeoutNow;
        if messages.iter().any(ends_lease) {
            if !planted!(LeaseOutlivesTransfer) {
                self.lease.suspend();
            }
            effects.messages.extend(messages.extract_if(.., |message| ends_lease(message)));
        }
        let is_snapshot = |message: &mut Message| message.get_msg_type() == MessageType::MsgSnapshot;
        for message in messages.extract_if(.., is_snapshot) {
            let bytes = CHUNK_BYTES.min(self.most_committed_bytes) as usize;
            if let Some(chunks) = self.node.store().chunks_for(message.to, bytes) {
                effects.snapshots.push(OutgoingSnapshot { message, chunks });
            }
        }
        if !messages.is_empty() {
            self.transport.send(messages);
        }
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
        let forgets = match entries.as_slice() {
            [] => planted!(UnsyncedVote),
            _ => planted!(UnsyncedAppend),
        };
        let sync = sync && !forgets;
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
        effects.apply.push(ApplyTask {
            entries,
            proposals: self.proposals.take_through(last),
            bytes,
            snapshot: None,
        });
    }

    /// Asks raft to confirm the leadership for the reads that wait for that.
    fn ask_reads(&mut self) {
        if self.reads.has_unasked() {
            self.ask();
        }
    }

    /// Lets confirmed reads go for which apply has come far enough. One that was confirmed under a term that has ended
    /// is still right to read, but nothing may be proposed on it: `propose` compares the terms.
    pub(super) fn release_reads(&mut self, effects: &mut Effects) {
        let applied = if planted!(ReadsUnapplied) { u64::MAX } else { self.applied };
        effects.readable.extend(self.reads.take_applied(applied));
    }
}
