//! A group of three replicas for tests, in memory, each with an observer, and the check at its end.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{
    Cause, CompletionMode, Config, Error, Outcome, Storage,
    engine::{Cf, Engine, memory::MemoryEngine},
    observe::Observe,
    raftstore::log_storage::MemoryLog,
    storage::{Cluster, Parts},
};

use crate::support::{PATIENCE, Recorder, TICK, config, wait_for, with_more_time};

/// Runs a test in all completion modes, one thread each.
pub(crate) fn in_every_mode_at_once(test: impl Fn(CompletionMode) + Sync) {
    thread::scope(|scope| {
        for mode in CompletionMode::ALL {
            let test = &test;
            let builder = thread::Builder::new().name(format!("{mode:?}"));
            builder.spawn_scoped(scope, move || test(mode)).unwrap();
        }
    });
}

/// As above, for tests whose leader has to go on leading until they end that. `None` says that another one was elected before, as
/// happens on a machine that has other things to do: the test is repeated with longer ticks.
pub(crate) fn in_every_mode_steadily(test: impl Fn(CompletionMode, Duration) -> Option<()> + Sync) {
    in_every_mode_at_once(|mode| with_more_time(TICK, |tick| test(mode, tick)));
}

/// Whether a replica was not the leader, or is it no longer.
pub(crate) fn is_deposed<T>(outcome: &Outcome<T>) -> bool {
    matches!(
        outcome,
        Outcome::NotExecuted(Error::NotLeader { .. } | Error::StaleCommand)
            | Outcome::Indeterminate(Cause::LeadershipLost)
    )
}

/// What is left of a replica that stops.
#[derive(Clone, Default)]
struct Kept {
    engine: MemoryEngine,
    log: MemoryLog,
}

/// What watched each replica, in the order of their starts.
type Recorders = Arc<Mutex<Vec<(u64, Arc<Recorder>)>>>;

/// Three replicas.
pub(crate) struct Group {
    pub(crate) cluster: Cluster,
    kept: Arc<Mutex<BTreeMap<u64, Kept>>>,
    recorders: Recorders,
    config: Config,
}

impl Group {
    pub(crate) fn open(mode: CompletionMode) -> Self {
        Self::with_config(config(mode, "in-memory".as_ref()))
    }

    pub(crate) fn with_tick(mode: CompletionMode, tick: Duration) -> Self {
        let mut config = config(mode, "in-memory".as_ref());
        config.tick = tick;
        Self::with_config(config)
    }

    pub(crate) fn with_config(mut config: Config) -> Self {
        config.election_ticks = 12;
        config.stay_awake = Duration::ZERO;
        let kept = Arc::<Mutex<BTreeMap<u64, Kept>>>::default();
        let recorders = Recorders::default();
        let (own_kept, own_recorders) = (Arc::clone(&kept), Arc::clone(&recorders));
        let parts = move |id| {
            let Kept { engine, log } = own_kept.lock().unwrap().entry(id).or_default().clone();
            Ok(Parts { dir: format!("replica-{id}").into(), engine: Arc::new(engine), log: Box::new(log) })
        };
        let observer = move |id| {
            let recorder = Arc::new(Recorder::default());
            own_recorders.lock().unwrap().push((id, Arc::clone(&recorder)));
            Some(recorder as Arc<dyn Observe>)
        };
        let cluster = Cluster::open_with(config.clone(), 3, parts, observer).unwrap();
        Self { cluster, kept, recorders, config }
    }

    pub(crate) fn election_timeout(&self) -> Duration {
        self.config.tick * self.config.election_ticks as u32
    }

    /// What watches a replica since its last start.
    pub(crate) fn recorder(&self, replica: u64) -> Arc<Recorder> {
        let recorders = self.recorders.lock().unwrap();
        let own = recorders.iter().rev().find(|(id, _)| *id == replica);
        Arc::clone(&own.expect("it was started").1)
    }

    pub(crate) fn leader(&self) -> Storage {
        self.other_leader(0)
    }

    /// A leader that is another one than this, and believed to be it by a majority.
    pub(crate) fn other_leader(&self, than: u64) -> Storage {
        let agreed = || {
            let leader = self.cluster.leader()?.clone();
            let status = leader.status();
            let follows = |other: &Storage| {
                let seen = other.status();
                seen.term == status.term && seen.leader == Some(status.replica)
            };
            let followers = self.cluster.replicas().filter(|(_, other)| follows(other)).count();
            (status.replica != than && followers >= 2).then_some(leader)
        };
        wait_for("a leader", || agreed().is_some());
        agreed().unwrap_or_else(|| self.other_leader(than))
    }

    pub(crate) fn others(&self, than: u64) -> Vec<u64> {
        self.cluster.replicas().map(|(id, _)| id).filter(|id| *id != than).collect()
    }

    /// Asks whoever leads, but for one, until it is done. Says who did it, and what came of it.
    pub(crate) fn ask<T: Debug>(&self, not: u64, run: impl Fn(&Storage) -> Outcome<T>) -> (Storage, T) {
        let until = Instant::now() + PATIENCE;
        loop {
            let leader = self.other_leader(not);
            match run(&leader) {
                Outcome::Applied(value) => return (leader, value),
                other => assert!(Instant::now() < until, "{other:?} by {:?}", leader.status()),
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Writes a key on whoever leads, until that is acknowledged. Says which replica led, and after how many attempts.
    pub(crate) fn write_until_applied(&self, key: &str) -> (u64, usize) {
        let until = Instant::now() + PATIENCE;
        for attempt in 1.. {
            assert!(Instant::now() < until, "nobody takes a write");
            if let Some(leader) = self.cluster.leader()
                && leader.raw_put(key.as_bytes(), b"v").is_applied()
            {
                return (leader.status().replica, attempt);
            }
            thread::sleep(Duration::from_millis(2));
        }
        unreachable!("it counts up for ever")
    }

    /// Waits until every replica that runs has applied the same entries.
    pub(crate) fn agree(&self) {
        self.write_until_applied("agree");
        wait_for("agreement", || {
            let mut indices = self.cluster.replicas().map(|(_, storage)| storage.applied_index());
            let first = indices.next();
            indices.all(|index| Some(index) == first)
        });
    }

    /// A raw value in a replica's own data, whoever leads.
    pub(crate) fn on_disk(&self, replica: u64, key: &str) -> Option<Vec<u8>> {
        let engine = self.kept.lock().unwrap()[&replica].engine.clone();
        engine.snapshot().get(Cf::Raw, key.as_bytes()).unwrap()
    }

    /// Stops a replica, which loses what its log had not synced.
    pub(crate) fn lose_power(&mut self, replica: u64) {
        self.cluster.stop(replica);
        self.kept.lock().unwrap()[&replica].log.lose_power();
    }

    /// Ends a replica as a kill does: its data is what it was, and nothing is said of how much of that is synced.
    pub(crate) fn kill(&mut self, replica: u64) {
        let engine = self.kept.lock().unwrap()[&replica].engine.fork();
        self.lose_power(replica);
        self.kept.lock().unwrap().get_mut(&replica).unwrap().engine = engine;
    }

    /// The end of every test: all that was accepted is answered once, and everything is at rest.
    pub(crate) fn finish(self) {
        for (id, storage) in self.cluster.replicas() {
            wait_for("quiescence", || storage.in_flight().is_quiescent() || storage.fault().is_some());
            assert_eq!(storage.fault(), None, "replica {id}");
        }
        for (id, storage) in self.cluster.replicas() {
            storage.close();
            assert!(storage.in_flight().is_quiescent(), "replica {id}: {:?}", storage.in_flight());
        }
        self.recorders.lock().unwrap().iter().for_each(|(_, recorder)| recorder.check_answers());
    }
}
