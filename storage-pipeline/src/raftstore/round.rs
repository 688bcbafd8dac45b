//! A peer's part of a round: what raft asks for at one time, before the write of the log and after it. Pure but for the log.

use raft::{
    Ready,
    eraftpb::{Entry, HardState, Message, MessageType, Snapshot},
};

use crate::{
    apply::task::ApplyTask,
    engine::EngineError,
    error::{Cause, Outcome},
    observe::{FailPoint, Moment},
    planted::planted,
    raftstore::{
        appends::cut,
        log_storage::Position,
        peer::{Effects, Peer},
        snapshot::{self, OutgoingSnapshot},
    },
    scheduler::task::Settled,
};

/// Most bytes of keys and values in one chunk of a snapshot. Where apply is given less at a time, that is the bound.
const CHUNK_BYTES: u64 = 256 << 10;

/// What a peer has begun and goes on with once the log is written.
pub(super) struct Begun {
    ready: Ready,
    /// Messages that acknowledge what is being written.
    once_durable: Vec<Message>,
    /// Whether the write is synced; nothing where there is none.
    writes: Option<bool>,
    /// The place behind which the log begins anew.
    restart: Option<Position>,
}

impl Peer {
    /// Takes what raft asks for, up to the write of the log. Says whether there was anything.
    pub(super) fn begin(&mut self, effects: &mut Effects) -> Result<bool, EngineError> {
        self.follow_changes(effects);
        if !self.has_work() {
            return Ok(false);
        }
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
        let (mut writes, mut restart) = (None, None);
        if !ready.snapshot().is_empty() {
            restart = Some(self.stage_restart(ready.snapshot(), entries, hard_state)?);
        } else if !entries.is_empty() || hard_state.is_some() {
            writes = Some(self.stage(entries, hard_state, ready.must_sync())?);
        }
        self.begun = Some(Begun { ready, once_durable, writes, restart });
        Ok(true)
    }

    /// Goes on with what was begun, now that the log is written.
    pub(super) fn go_on(&mut self, effects: &mut Effects) {
        let Some(Begun { ready, once_durable, writes, restart }) = self.begun.take() else { return };
        if let Some(synced) = writes {
            let last_index = self.node.raft.raft_log.last_index();
            self.observer.note(Moment::LogWritten { region: self.region(), last_index, synced });
        }
        if let Some(position) = restart {
            self.restarted(position, effects);
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

    /// Before the round at a close: what was proposed goes to apply however far that lags, because nobody will report its
    /// progress. The bound of commands in flight bounds this too. Says whether there is anything.
    pub(crate) fn let_all_go(&mut self) -> bool {
        let any = !self.proposals.is_empty();
        if any {
            self.most_applying_bytes = usize::MAX;
        }
        any
    }

    /// A snapshot takes the place of the log. It is complete and synced beside the data; apply installs it in its turn.
    fn stage_restart(
        &mut self,
        snapshot: &Snapshot,
        entries: Vec<Entry>,
        hard_state: Option<HardState>,
    ) -> Result<Position, EngineError> {
        let position = snapshot::manifest(snapshot).position;
        self.write_may_fail(entries.len())?;
        self.node.mut_store().stage_restart(position, entries, hard_state)?;
        Ok(position)
    }

    /// The log begins behind a snapshot.
    fn restarted(&mut self, position: Position, effects: &mut Effects) {
        let (region, last_index) = (self.region(), position.index);
        self.observer.note(Moment::LogWritten { region, last_index, synced: true });
        // Whether their entries are among those that the snapshot stands for, nobody here can tell any more.
        for pending in self.proposals.take_through(position.index) {
            let reply = Outcome::Indeterminate(Cause::SnapshotInstalled);
            effects.settled.push(Settled::without_entry(pending.task, reply));
        }
        // Apply replaces the data key by key, beside whoever takes a snapshot of it. Whoever leads then has all that they asked for.
        let released = std::mem::take(&mut effects.readable).into_iter().map(|(job, _)| job);
        let waiting = self.reads.take_all();
        self.refuse_reads(released.chain(waiting), effects);
        effects.apply.push(ApplyTask { snapshot: Some(position), ..self.apply_task() });
    }

    fn write_may_fail(&self, entries: usize) -> Result<(), EngineError> {
        self.observer.note(Moment::LogWriting { region: self.region(), entries });
        if self.observer.fails(FailPoint::LogWrite) {
            return Err(EngineError::new("injected failure of a log write"));
        }
        Ok(())
    }

    /// Raft must not look for entries that a snapshot stands for. Reads wait for apply all the same.
    fn skip_to_snapshot(&mut self) {
        let truncated = self.node.store().truncated_index();
        if truncated > self.node.raft.raft_log.applied {
            self.node.advance_apply_to(truncated);
        }
    }

    /// Sends messages, but for those that end a lease: whoever gets one may be elected at once, so the lease has to be
    /// withdrawn from all readers first. That is the wish that another voter takes over, and the vote of a replica that led
    /// until now. Snapshots go with their data to the thread that sends them.
    fn send(&mut self, mut messages: Vec<Message>, effects: &mut Effects) {
        let ends_lease = |message: &Message| match message.get_msg_type() {
            MessageType::MsgTimeoutNow => true,
            MessageType::MsgRequestVoteResponse => self.leads.is_some() && !message.reject,
            _ => false,
        };
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
                let region = self.region();
                effects.snapshots.push(OutgoingSnapshot { region, message, chunks });
            }
        }
        if !messages.is_empty() {
            self.transport.send(self.region(), cut(messages, self.most_committed_bytes));
        }
    }

    /// Says whether the write will be synced.
    fn stage(
        &mut self,
        entries: Vec<Entry>,
        hard_state: Option<HardState>,
        sync: bool,
    ) -> Result<bool, EngineError> {
        self.write_may_fail(entries.len())?;
        let forgets = match entries.as_slice() {
            [] => planted!(UnsyncedVote),
            _ => planted!(UnsyncedAppend),
        };
        self.node.mut_store().stage(entries, hard_state, sync && !forgets)
    }

    /// Hands committed entries to apply, with every proposal whose place they reach.
    fn commit(&mut self, entries: Vec<Entry>, effects: &mut Effects) {
        let Some(last) = entries.last().map(|entry| entry.index) else { return };
        let bytes = entries.iter().map(|entry| entry.data.len() + size_of::<Entry>()).sum();
        self.applying_bytes += bytes;
        let proposals = self.proposals.take_through(last);
        self.observer.note(Moment::Committed { region: self.region(), index: last });
        effects.apply.push(ApplyTask { entries, proposals, bytes, ..self.apply_task() });
    }

    /// A task of this region with nothing in it.
    fn apply_task(&self) -> ApplyTask {
        ApplyTask { region: self.region(), ..ApplyTask::default() }
    }
}
