//! One replica: its disk and its clock, which outlive it, and its life while it has one.

use std::time::{Duration, Instant};

use crate::{
    clock,
    config::Config,
    error::OpenError,
    simulator::{
        disk::Disk,
        event::Event,
        life::{Life, Room},
        random::Random,
    },
};

/// A clock that starts somewhere and runs a little fast or slow.
#[derive(Clone, Copy)]
pub(super) struct DriftingClock {
    pub(super) start: Instant,
    /// Its nanoseconds in a thousand real ones.
    pub(super) per_thousand: u64,
}

impl DriftingClock {
    fn at(self, now: Duration) -> Instant {
        self.start + Duration::from_nanos(now.as_nanos() as u64 / 1000 * self.per_thousand)
    }

    /// When it will show this time.
    fn when(self, shows: Instant) -> Duration {
        let nanos = shows.saturating_duration_since(self.start).as_nanos() as u64;
        Duration::from_nanos((nanos / self.per_thousand + 1) * 1000)
    }
}

/// A replica, alive or not.
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) config: Config,
    pub(super) disk: Disk,
    pub(super) clock: DriftingClock,
    pub(super) life: Option<Life>,
    /// How often it was started.
    pub(super) lives: u64,
    /// Until when each room stands still, in the order of [`Room::ALL`].
    pub(super) held_until: [Duration; Room::ALL.len()],
    /// Whether a failure of its disk was planned in this life.
    pub(super) may_fail: bool,
}

impl Node {
    /// A replica that was never started, of this group. What may differ from replica to replica is drawn.
    pub(super) fn new(id: u64, group: &Config, start: Instant, random: &mut Random) -> Self {
        let mut config = group.clone();
        config.replica_id = id;
        config.max_in_flight_commands = *random.pick(&[3, 64]);
        config.latch_slots = *random.pick(&[1, 64]);
        config.log_gc_entries = *random.pick(&[5, 1000]);
        config.log_gc_size_limit = *random.pick(&[0, 1000, 64 << 20]);
        config.log_gc_patience_ticks = *random.pick(&[2, 20, usize::MAX]);
        config.max_apply_bytes = *random.pick(&[64, 4 << 20]);
        // A tenth faster or slower: together less than the bound on drift of a fifth.
        let per_thousand = 910 + random.below(181) as u64;
        let ahead = random.between(Duration::ZERO, Duration::from_secs(1000));
        Self {
            id,
            config,
            disk: Disk::default(),
            clock: DriftingClock { start: start + ahead, per_thousand },
            life: None,
            lives: 0,
            held_until: [Duration::ZERO; Room::ALL.len()],
            may_fail: false,
        }
    }

    /// Starts it from its disk.
    pub(super) fn start(&mut self, now: Duration, random: &mut Random) -> Result<(), OpenError> {
        self.give_time(now);
        self.disk.forget_faults();
        let parts = self.disk.parts(self.id);
        self.life = Some(Life::start(&self.config, parts, now, random)?);
        self.lives += 1;
        self.held_until.fill(Duration::ZERO);
        self.may_fail = false;
        Ok(())
    }

    /// From here on the current thread reads this replica's clock.
    pub(super) fn give_time(&self, now: Duration) {
        clock::give(Some(self.clock.at(now)));
    }

    /// What time its clock shows.
    pub(super) fn time(&self, now: Duration) -> Instant {
        self.clock.at(now)
    }

    /// The rooms that have something to do now.
    pub(super) fn ready(&self, now: Duration) -> Vec<Room> {
        let Some(life) = &self.life else { return Vec::new() };
        let is_held = |room: Room| self.held_until[room as usize] > now;
        let time = self.clock.at(now);
        Room::ALL.into_iter().filter(|room| !is_held(*room) && life.is_ready(*room, now, time)).collect()
    }

    /// When the next of its rooms has something to do, if nobody sends it anything.
    pub(super) fn next_timer(&self, now: Duration) -> Option<Duration> {
        let life = self.life.as_ref()?;
        let tick = self.clock.when(life.rooms.store.next_tick());
        let timers = [(Room::Raftstore, tick), (Room::Maintenance, life.next_maintenance)];
        let held = Room::ALL.into_iter().map(|room| self.held_until[room as usize]).filter(|end| *end > now);
        timers
            .into_iter()
            .filter(|(room, _)| !life.ended[*room as usize])
            .map(|(room, due)| due.max(self.held_until[room as usize]))
            .chain(held)
            .min()
    }

    /// Gives a room its turn.
    pub(super) fn turn(&mut self, room: Room, now: Duration, random: &mut Random) {
        self.give_time(now);
        if let Some(life) = &mut self.life {
            life.turn(room, now, random);
        }
    }

    /// Takes what has happened since the last time.
    pub(super) fn take_events(&self) -> Vec<Event> {
        self.life.as_ref().map(|life| life.events.take()).unwrap_or_default()
    }

    /// Whether a close has come to its end.
    pub(super) fn is_closed(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.ended.iter().all(|ended| *ended) && life.closing.is_some())
    }
}
