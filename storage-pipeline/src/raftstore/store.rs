//! The raftstore's thread: messages in, one round of the peer for all of them, effects out. It ends when its mailbox
//! is closed and empty, or with the first failure of the log.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    apply::task::ApplyTask,
    clock,
    engine::EngineError,
    local_reader::lease::Lease,
    mailbox::{Disturb, Mailbox, Received},
    patience::Patience,
    raftstore::{
        msg::StoreMsg,
        peer::{Effects, Peer},
        snapshot::OutgoingSnapshot,
        status::{ReplicaStatus, SharedStatus},
    },
    scheduler::{Scheduler, task::Settled},
};

/// What the thread owns and holds.
pub(crate) struct Store {
    pub(crate) peer: Peer,
    pub(crate) mailbox: Mailbox<StoreMsg>,
    pub(crate) apply: Mailbox<ApplyTask>,
    pub(crate) snapshots: Mailbox<OutgoingSnapshot>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) status: SharedStatus,
    tick: Duration,
    next_tick: Instant,
    /// The lease and the status that others see.
    published: (Option<Lease>, ReplicaStatus),
    /// What the peer wants done and is not done yet; empty between two turns.
    effects: Effects,
}

impl Store {
    pub(crate) fn new(
        peer: Peer,
        mailbox: Mailbox<StoreMsg>,
        apply: Mailbox<ApplyTask>,
        scheduler: Arc<Scheduler>,
    ) -> Self {
        Self {
            peer,
            mailbox,
            apply,
            snapshots: Mailbox::default(),
            status: SharedStatus::default(),
            tick: scheduler.config.tick,
            next_tick: clock::now(),
            published: Default::default(),
            effects: Effects::default(),
            scheduler,
        }
    }

    /// Runs until the mailbox is closed and empty.
    pub(crate) fn run(mut self) {
        if let Err(error) = self.drive() {
            self.fail(&error);
        }
    }

    fn drive(&mut self) -> Result<(), EngineError> {
        self.begin()?;
        let mut messages = VecDeque::new();
        let mut patience = Patience::new(self.scheduler.config.stay_awake, Instant::now());
        loop {
            patience.stay_awake(&self.mailbox);
            // A report of apply for which nothing waits is read with the next message, or tick.
            let disturb = if self.peer.awaits_apply() { Disturb::Always } else { Disturb::Undisturbed };
            if self.mailbox.receive_if(&mut messages, Some(self.next_tick), disturb) == Received::Closed {
                return self.end();
            }
            let proposals = messages.iter().filter(|message| matches!(message, StoreMsg::Propose(_)));
            patience.received(proposals.count(), Instant::now());
            self.turn(&mut messages)?;
            patience.done(Instant::now());
        }
    }

    /// When the next tick is due.
    #[cfg(feature = "simulator")]
    pub(crate) fn next_tick(&self) -> Instant {
        self.next_tick
    }

    /// What comes before any message.
    pub(crate) fn begin(&mut self) -> Result<(), EngineError> {
        self.peer.campaign_alone().map_err(EngineError::new)?;
        self.round()
    }

    /// Takes messages, and a tick where one is due, and does everything that comes of them.
    pub(crate) fn turn(&mut self, messages: &mut VecDeque<StoreMsg>) -> Result<(), EngineError> {
        let now = clock::now();
        for message in messages.drain(..) {
            self.handle(message)?;
        }
        if now >= self.next_tick {
            // Ticks missed in a stall are not replayed: time in which this thread stood still proves nothing about the
            // others.
            self.next_tick = now + self.tick;
            self.peer.tick(now);
        }
        self.round()
    }

    /// What comes after the last message.
    pub(crate) fn end(&mut self) -> Result<(), EngineError> {
        self.scheduler.reader.lease.publish(None);
        self.peer.last_round(&mut self.effects)?;
        self.act();
        Ok(())
    }

    /// The log has failed: nothing more is acknowledged.
    pub(crate) fn fail(&self, error: &EngineError) {
        self.scheduler.reader.lease.publish(None);
        self.scheduler.poison(&format!("raft log: {error}"));
        self.mailbox.close();
    }

    fn round(&mut self) -> Result<(), EngineError> {
        self.peer.round(&mut self.effects)?;
        self.publish();
        self.act();
        Ok(())
    }

    fn handle(&mut self, message: StoreMsg) -> Result<(), EngineError> {
        let effects = &mut self.effects;
        match message {
            StoreMsg::Propose(proposal) => self.peer.propose(proposal, effects),
            StoreMsg::Read(job) => self.peer.read(job, effects),
            StoreMsg::Raft(message) => self.peer.step(*message)?,
            StoreMsg::SnapshotSent { to, taken } => self.peer.snapshot_sent(to, taken),
            StoreMsg::TransferLeader(to) => self.peer.transfer_leader(to),
            StoreMsg::ChangeMembers(wish) => self.peer.change_members(*wish, effects),
            StoreMsg::Applied(res) => self.peer.applied(res, effects),
            StoreMsg::Truncate(index) => {
                let config = &self.scheduler.config;
                self.peer.truncate(index, config.log_gc_size_limit, config.log_gc_patience_ticks)?;
            }
        }
        Ok(())
    }

    fn publish(&mut self) {
        let (lease, status) = (self.peer.lease(), self.peer.status());
        if lease != self.published.0 {
            self.scheduler.reader.lease.publish(lease);
        }
        if status != self.published.1 {
            self.status.publish(status);
        }
        self.published = (lease, status);
    }

    fn act(&mut self) {
        let effects = &mut self.effects;
        self.peer.send_withheld(std::mem::take(&mut effects.messages));
        for snapshot in effects.snapshots.drain(..) {
            // Only a store that closes refuses it, and that sends nothing more.
            let _ = self.snapshots.send(snapshot);
        }
        for task in effects.apply.drain(..) {
            if self.apply.send(task).is_err() {
                // Apply has stopped after a fault. The entries stay in the log, and their callers were answered.
                tracing::warn!("committed entries are left for the next start");
            }
        }
        if !effects.settled.is_empty() {
            self.scheduler.settle_all(std::mem::take(&mut effects.settled));
        }
        for (callback, outcome) in effects.changed.drain(..) {
            callback.call(outcome);
        }
        for (job, term) in effects.readable.drain(..) {
            if let Err((job, _)) = self.scheduler.reader.confirmed(job, term) {
                self.scheduler.settle(Settled::not_executed(job.task, self.scheduler.refusal()));
            }
        }
    }
}
