//! The raftstore's thread: messages in, one round of the peer for all of them, effects out. It ends when its mailbox
//! is closed and empty, or with the first failure of the log.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    apply::task::ApplyTask,
    engine::EngineError,
    error::Outcome,
    local_reader::lease::Lease,
    mailbox::{Disturb, Mailbox, Received},
    observe::Moment,
    patience::Patience,
    raftstore::{
        msg::StoreMsg,
        peer::{Effects, Peer},
        status::SharedStatus,
    },
    scheduler::{Scheduler, task::Settled},
};

/// What the thread owns and holds.
pub(crate) struct Store {
    pub(crate) peer: Peer,
    pub(crate) mailbox: Mailbox<StoreMsg>,
    pub(crate) apply: Mailbox<ApplyTask>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) status: SharedStatus,
    pub(crate) tick: Duration,
}

impl Store {
    /// Runs until the mailbox is closed and empty.
    pub(crate) fn run(mut self) {
        if let Err(error) = self.drive() {
            self.scheduler.reader.lease.publish(None);
            self.scheduler.poison(&format!("raft log: {error}"));
            self.mailbox.close();
        }
    }

    fn drive(&mut self) -> Result<(), EngineError> {
        self.peer.campaign_alone().map_err(EngineError::new)?;
        let mut messages = VecDeque::new();
        let mut effects = Effects::default();
        let mut published = None;
        let mut next_tick = Instant::now();
        let mut patience = Patience::new(self.scheduler.config.stay_awake, next_tick);
        loop {
            self.peer.round(&mut effects)?;
            self.publish(&mut published);
            self.act(&mut effects);
            patience.done(Instant::now());
            patience.stay_awake(&self.mailbox);
            // A report of apply for which nothing waits is read with the next message, or tick.
            let disturb = if self.peer.awaits_apply() { Disturb::Always } else { Disturb::Undisturbed };
            if self.mailbox.receive_if(&mut messages, Some(next_tick), disturb) == Received::Closed {
                self.scheduler.reader.lease.publish(None);
                self.peer.last_round(&mut effects)?;
                self.act(&mut effects);
                return Ok(());
            }
            let now = Instant::now();
            let proposals = messages.iter().filter(|message| matches!(message, StoreMsg::Propose(_)));
            patience.received(proposals.count(), now);
            for message in messages.drain(..) {
                self.handle(message, &mut effects)?;
            }
            if now >= next_tick {
                // Ticks missed in a stall are not replayed: time in which this thread stood still proves nothing
                // about the others.
                next_tick = now + self.tick;
                self.peer.tick(now);
            }
        }
    }

    fn handle(&mut self, message: StoreMsg, effects: &mut Effects) -> Result<(), EngineError> {
        match message {
            StoreMsg::Propose(proposal) => self.peer.propose(proposal, effects),
            StoreMsg::Read(job) => self.peer.read(job, effects),
            StoreMsg::Raft(message) => self.peer.step(*message),
            StoreMsg::TransferLeader(to) => self.peer.transfer_leader(to),
            StoreMsg::Applied(res) => self.peer.applied(res, effects),
            StoreMsg::Truncate(index) => {
                self.scheduler.observer.note(Moment::Truncating { index });
                self.peer.truncate(index)?;
            }
        }
        Ok(())
    }

    fn publish(&self, published: &mut Option<Lease>) {
        let lease = self.peer.lease();
        if lease != *published {
            *published = lease;
            self.scheduler.reader.lease.publish(lease);
        }
        let status = self.peer.status();
        if status != self.status.get() {
            self.status.publish(status);
        }
    }

    fn act(&self, effects: &mut Effects) {
        self.peer.send_withheld(std::mem::take(&mut effects.messages));
        for task in effects.apply.drain(..) {
            if self.apply.send(task).is_err() {
                // Apply has stopped after a fault. The entries stay in the log, and their callers were answered.
                tracing::warn!("committed entries are left for the next start");
            }
        }
        if !effects.settled.is_empty() {
            self.scheduler.settle_all(std::mem::take(&mut effects.settled));
        }
        for (job, term) in effects.readable.drain(..) {
            if let Err((job, _)) = self.scheduler.reader.confirmed(job, term) {
                let reply = Outcome::NotExecuted(self.scheduler.refusal());
                self.scheduler.settle(Settled::without_entry(job.task, reply));
            }
        }
    }
}
