//! The raftstore's thread: messages in, one round of all regions' peers for all of them, effects out. It ends when its
//! mailbox is closed and empty, or with the first failure of the log.

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
        msg::{StoreMsg, ToRegion},
        peer::{Effects, Peer},
        snapshot::OutgoingSnapshot,
        status::{ReplicaStatus, SharedStatus},
        together::round,
    },
    region::FIRST_REGION,
    scheduler::{Scheduler, task::Settled},
};

/// What the thread owns and holds.
pub(crate) struct Store {
    /// In the order of their regions' ids.
    pub(crate) regions: Vec<RegionStore>,
    pub(crate) mailbox: Mailbox<ToRegion>,
    /// The threads of the apply pool, among which the regions are dealt out.
    pub(crate) apply: Vec<Mailbox<ApplyTask>>,
    pub(crate) snapshots: Mailbox<OutgoingSnapshot>,
    pub(crate) scheduler: Arc<Scheduler>,
    tick: Duration,
    next_tick: Instant,
}

/// One region in the store.
pub(crate) struct RegionStore {
    pub(crate) peer: Peer,
    pub(crate) status: SharedStatus,
    /// The lease and the status that others see.
    published: (Option<Lease>, ReplicaStatus),
    /// What the peer wants done and is not done yet; empty between two turns.
    effects: Effects,
}

/// Which thread of an apply pool of so many has this region.
pub(crate) fn apply_thread(region: u64, threads: usize) -> usize {
    ((region - FIRST_REGION) % threads as u64) as usize
}

impl Store {
    pub(crate) fn new(
        peers: Vec<Peer>,
        mailbox: Mailbox<ToRegion>,
        apply: Vec<Mailbox<ApplyTask>>,
        scheduler: Arc<Scheduler>,
    ) -> Self {
        let region = |peer| RegionStore {
            peer,
            status: SharedStatus::default(),
            published: Default::default(),
            effects: Effects::default(),
        };
        Self {
            regions: peers.into_iter().map(region).collect(),
            mailbox,
            apply,
            snapshots: Mailbox::default(),
            tick: scheduler.config.tick,
            next_tick: clock::now(),
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
            let awaits_apply = self.regions.iter().any(|region| region.peer.awaits_apply());
            let disturb = if awaits_apply { Disturb::Always } else { Disturb::Undisturbed };
            if self.mailbox.receive_if(&mut messages, Some(self.next_tick), disturb) == Received::Closed {
                return self.end();
            }
            let proposals = messages.iter().filter(|about| matches!(about.message, StoreMsg::Propose(_)));
            let in_flight = self.scheduler.in_flight.counts().0;
            patience.received(proposals.count(), in_flight, Instant::now());
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
        for region in &mut self.regions {
            region.peer.campaign_alone().map_err(EngineError::new)?;
        }
        self.round()
    }

    /// Takes messages, and a tick where one is due, and does everything that comes of them.
    pub(crate) fn turn(&mut self, messages: &mut VecDeque<ToRegion>) -> Result<(), EngineError> {
        let now = clock::now();
        for ToRegion { region, message } in messages.drain(..) {
            self.handle(region, message)?;
        }
        if now >= self.next_tick {
            // Ticks missed in a stall are not replayed: time in which this thread stood still proves nothing about the
            // others.
            self.next_tick = now + self.tick;
            self.regions.iter_mut().for_each(|region| region.peer.tick(now));
        }
        self.round()
    }

    /// What comes after the last message.
    pub(crate) fn end(&mut self) -> Result<(), EngineError> {
        self.withdraw_leases();
        let with_proposals: Vec<_> = self.regions.iter_mut().map(|region| region.peer.let_all_go()).collect();
        if with_proposals.contains(&true) {
            round(&mut self.regions, RegionStore::parts)?;
        }
        self.act();
        Ok(())
    }

    /// The log has failed: nothing more is acknowledged.
    pub(crate) fn fail(&self, error: &EngineError) {
        self.withdraw_leases();
        self.scheduler.poison(&format!("raft log: {error}"));
        self.mailbox.close();
    }

    fn withdraw_leases(&self) {
        self.scheduler.reader.regions.iter().for_each(|region| region.lease.publish(None));
    }

    fn round(&mut self) -> Result<(), EngineError> {
        round(&mut self.regions, RegionStore::parts)?;
        self.publish();
        self.act();
        Ok(())
    }

    fn handle(&mut self, region: u64, message: StoreMsg) -> Result<(), EngineError> {
        let RegionStore { peer, effects, .. } = &mut self.regions[(region - FIRST_REGION) as usize];
        match message {
            StoreMsg::Propose(proposal) => peer.propose(proposal, effects),
            StoreMsg::Read(job) => peer.read(job, effects),
            StoreMsg::Raft(message) => peer.step(*message)?,
            StoreMsg::SnapshotSent { to, taken } => peer.snapshot_sent(to, taken),
            StoreMsg::TransferLeader(to) => peer.transfer_leader(to),
            StoreMsg::ChangeMembers(wish) => peer.change_members(*wish, effects),
            StoreMsg::Applied(res) => peer.applied(res, effects),
            StoreMsg::Truncate(index) => {
                let config = &self.scheduler.config;
                peer.truncate(index, config.log_gc_size_limit, config.log_gc_patience_ticks)?;
            }
        }
        Ok(())
    }

    fn publish(&mut self) {
        for (region, reader) in self.regions.iter_mut().zip(&self.scheduler.reader.regions) {
            let (lease, status) = (region.peer.lease(), region.peer.status());
            if lease != region.published.0 {
                reader.lease.publish(lease);
            }
            if status != region.published.1 {
                status.log(region.peer.region(), &region.published.1);
                region.status.publish(status);
            }
            region.published = (lease, status);
        }
    }

    fn act(&mut self) {
        // What others wait for goes before any caller's code runs, in all regions.
        for RegionStore { peer, effects, .. } in &mut self.regions {
            peer.send_withheld(std::mem::take(&mut effects.messages));
            for snapshot in effects.snapshots.drain(..) {
                // Only a store that closes refuses it, and that sends nothing more.
                let _ = self.snapshots.send(snapshot);
            }
            for task in effects.apply.drain(..) {
                let thread = apply_thread(task.region, self.apply.len());
                if self.apply[thread].send(task).is_err() {
                    // Apply has stopped after a fault. The entries stay in the log, and their callers were answered.
                    tracing::warn!("committed entries are left for the next start");
                }
            }
        }
        for RegionStore { effects, .. } in &mut self.regions {
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
}

impl RegionStore {
    fn parts(&mut self) -> (&mut Peer, &mut Effects) {
        (&mut self.peer, &mut self.effects)
    }
}
