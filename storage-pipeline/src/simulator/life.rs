//! A replica from its start to its end: its rooms, each of which has its turns when the simulator says so.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    config::Config,
    engine::EngineError,
    error::OpenError,
    mailbox::{Mailbox, Received},
    maintenance::sync_data,
    observe::{Observe, Observer},
    scheduler::single_thread,
    simulator::{event::Events, random::Random},
    storage::{Parts, recover::recover, rooms::Rooms},
    worker_pool::{self, WorkerTask},
};

/// How often the maintenance thread would look.
const MAINTENANCE: Duration = Duration::from_millis(10);

/// A part of a replica that a thread of its own would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Scheduler,
    Worker,
    Raftstore,
    Snapshots,
    Apply,
    Maintenance,
}

impl Room {
    pub(super) const ALL: [Self; 6] =
        [Self::Scheduler, Self::Worker, Self::Raftstore, Self::Snapshots, Self::Apply, Self::Maintenance];
}

/// A replica from its start to its end.
pub(super) struct Life {
    pub(super) rooms: Rooms,
    pub(super) events: Events,
    /// What the workers have taken.
    working: Vec<WorkerTask>,
    pub(super) next_maintenance: Duration,
    pub(super) ended: [bool; Room::ALL.len()],
    /// The room that a close has come to.
    pub(super) closing: Option<Room>,
    /// For each region its term, and the ticks after which it asks for votes in it.
    terms: Vec<(u64, usize)>,
}

impl Life {
    /// Opens what its disk has, as a store does that opens.
    pub(super) fn start(
        config: &Config,
        parts: Parts,
        now: Duration,
        random: &mut Random,
    ) -> Result<Self, OpenError> {
        let events = Events::default();
        let observe: Arc<dyn Observe> = Arc::new(events.clone());
        let observer = Observer::new(observe);
        let recovered = recover(config, parts, Some(Arc::new(events.clone())), &observer)?;
        let mut life = Self {
            rooms: Rooms::new(config.clone(), recovered, observer),
            events,
            working: Vec::new(),
            next_maintenance: now + MAINTENANCE,
            ended: [false; Room::ALL.len()],
            closing: None,
            terms: Vec::new(),
        };
        life.terms.resize(life.rooms.store.regions.len(), (0, config.election_ticks));
        life.choose_election_timeout(random);
        if let Err(error) = life.rooms.store.begin() {
            life.fail(&error);
        }
        life.choose_election_timeout(random);
        Ok(life)
    }

    pub(super) fn is_ready(&self, room: Room, now: Duration, time: Instant) -> bool {
        let is_due = match room {
            Room::Raftstore => self.rooms.store.next_tick() <= time,
            Room::Maintenance => self.next_maintenance <= now,
            _ => false,
        };
        self.closing == Some(room) || self.has_messages(room) || (is_due && !self.ended[room as usize])
    }

    pub(super) fn turn(&mut self, room: Room, now: Duration, random: &mut Random) {
        if self.closing == Some(room) && !self.has_messages(room) {
            return self.end(room);
        }
        let scheduler = Arc::clone(&self.rooms.scheduler);
        match room {
            Room::Scheduler => {
                if let Some(message) = scheduler.own.receive() {
                    single_thread::turn(&scheduler, message);
                }
            }
            Room::Worker => {
                while self.working.len() < scheduler.config.worker_threads && !scheduler.workers.is_empty() {
                    self.working.extend(scheduler.workers.receive());
                }
                let task = self.working.swap_remove(random.below(self.working.len()));
                worker_pool::turn(&scheduler, task);
            }
            Room::Raftstore => {
                let mut messages = some(&self.rooms.store.mailbox, random);
                if let Err(error) = self.rooms.store.turn(&mut messages) {
                    self.fail(&error);
                }
                self.choose_election_timeout(random);
            }
            Room::Snapshots => {
                if let Some(snapshot) = self.rooms.snapshot_sender.mailbox.receive() {
                    self.events.refuse_chunks(random.one_in(6));
                    self.rooms.snapshot_sender.turn(snapshot);
                }
            }
            Room::Apply => {
                let mut tasks = some(&self.rooms.appliers[0].tasks, random);
                self.ended[room as usize] |= !self.rooms.appliers[0].turn(&mut tasks);
            }
            Room::Maintenance => {
                self.next_maintenance = now + MAINTENANCE;
                self.ended[room as usize] |= !self.rooms.maintenance.turn();
            }
        }
    }

    fn has_messages(&self, room: Room) -> bool {
        let rooms = &self.rooms;
        !self.ended[room as usize]
            && match room {
                Room::Scheduler => !rooms.scheduler.own.is_empty(),
                Room::Worker => !self.working.is_empty() || !rooms.scheduler.workers.is_empty(),
                Room::Raftstore => !rooms.store.mailbox.is_empty(),
                Room::Snapshots => !rooms.snapshot_sender.mailbox.is_empty(),
                Room::Apply => !rooms.appliers[0].tasks.is_empty(),
                Room::Maintenance => false,
            }
    }

    fn fail(&mut self, error: &EngineError) {
        self.rooms.store.fail(error);
        self.ended[Room::Raftstore as usize] = true;
    }

    /// Begins a close, which ends the rooms in the order in which a store joins its threads.
    pub(super) fn close(&mut self) {
        if self.closing.is_none() {
            self.rooms.scheduler.close();
            self.rooms.store.mailbox.close();
            self.closing = Some(Room::Raftstore);
        }
    }

    /// The room whose turn it is to end has nothing left.
    fn end(&mut self, room: Room) {
        let rooms = &mut self.rooms;
        if room == Room::Raftstore
            && !self.ended[room as usize]
            && let Err(error) = rooms.store.end()
        {
            rooms.store.fail(&error);
        }
        self.ended[room as usize] = true;
        let (next, scheduler) = match room {
            Room::Raftstore => {
                while rooms.store.mailbox.receive().is_some() {}
                rooms.snapshot_sender.mailbox.close();
                (Some(Room::Snapshots), None)
            }
            Room::Snapshots => {
                rooms.appliers[0].tasks.close();
                (Some(Room::Apply), None)
            }
            Room::Apply => {
                while rooms.appliers[0].tasks.receive().is_some() {}
                rooms.scheduler.workers.close();
                (Some(Room::Worker), None)
            }
            Room::Worker => {
                rooms.scheduler.own.close();
                (Some(Room::Scheduler), None)
            }
            Room::Scheduler => (Some(Room::Maintenance), None),
            Room::Maintenance => (Some(Room::Maintenance), Some(Arc::clone(&rooms.scheduler))),
        };
        self.closing = next;
        if let Some(scheduler) = scheduler {
            scheduler.discard();
            if scheduler.fault().is_none() {
                // A failure costs nothing: the log has it all.
                let _ = sync_data(&rooms.maintenance.regions);
            }
        }
    }

    /// Raft draws this from the same range, but not from the seed. It does so whenever its term changes, and does not look
    /// at it before its next tick.
    fn choose_election_timeout(&mut self, random: &mut Random) {
        let least = self.rooms.scheduler.config.election_ticks;
        for (region, (known, ticks)) in self.rooms.store.regions.iter_mut().zip(&mut self.terms) {
            let term = region.peer.raft().term;
            if term != *known {
                (*known, *ticks) = (term, least + random.below(least));
            }
            region.peer.set_election_timeout(*ticks);
        }
    }
}

/// All that is in a mailbox, or the first message of it.
fn some<T>(mailbox: &Mailbox<T>, random: &mut Random) -> VecDeque<T> {
    let mut messages = VecDeque::new();
    if mailbox.is_empty() {
        return messages;
    }
    if random.one_in(2) {
        messages.extend(mailbox.receive());
    } else {
        let received = mailbox.receive_all(&mut messages, None);
        debug_assert_eq!(received, Received::Some);
    }
    messages
}
