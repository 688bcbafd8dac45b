//! Leaders that die under load and come back: what was acknowledged is there, everybody is answered, and those who come
//! back catch up from the log or from a snapshot.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{Outcome, Storage, command::RawPut, raftstore::status::Role};

use crate::{
    group::{Group, in_every_mode_at_once},
    support::{PATIENCE, config, wait_for},
};

/// What writers share: who may be asked, and what came of it.
#[derive(Default)]
struct Load {
    replicas: Mutex<Vec<Storage>>,
    stop: AtomicBool,
    /// For each key the last value that was tried, and the last that was acknowledged.
    tried: Mutex<BTreeMap<String, u64>>,
    acknowledged: Mutex<BTreeMap<String, u64>>,
    count: AtomicU64,
}

impl Load {
    /// Writes on whoever leads until it is stopped. Each writer has its own keys and counts their values up.
    fn write(&self, writer: u64) {
        for n in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let leader = self.leader();
            let Some(leader) = leader else {
                thread::sleep(Duration::from_millis(2));
                continue;
            };
            let key = format!("{writer}-{}", n % 5);
            self.tried.lock().unwrap().insert(key.clone(), n);
            let put = RawPut { key: key.clone().into(), value: n.to_string().into() };
            let sent = Instant::now();
            let outcome = leader.execute_within(put, Duration::from_secs(3));
            assert!(sent.elapsed() < PATIENCE, "answered by its deadline");
            if outcome == Outcome::Applied(()) {
                self.acknowledged.lock().unwrap().insert(key, n);
                self.count.fetch_add(1, Ordering::Relaxed);
            } else if outcome.is_not_executed() {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    fn leader(&self) -> Option<Storage> {
        let replicas = self.replicas.lock().unwrap();
        let leads = |storage: &&Storage| storage.status().role == Role::Leader;
        replicas.iter().filter(leads).max_by_key(|storage| storage.status().term).cloned()
    }

    /// Tells the writers whom they may ask.
    fn follow(&self, group: &Group) {
        *self.replicas.lock().unwrap() =
            group.cluster.replicas().map(|(_, storage)| storage.clone()).collect();
    }

    fn wait_for_writes(&self, what: &str) {
        let before = self.count.load(Ordering::Relaxed);
        wait_for(what, || self.count.load(Ordering::Relaxed) > before + 30);
    }
}

#[test]
fn no_acknowledged_write_is_lost_while_leaders_lose_power_under_load_and_come_back() {
    in_every_mode_at_once(|mode| {
        let mut config = config(mode, "in-memory".as_ref());
        // One that comes back finds that the log has what it lacks, or that it needs a snapshot.
        config.log_gc_entries = 20;
        let mut group = Group::with_config(config);
        let load = Load::default();
        thread::scope(|scope| {
            group.leader();
            load.follow(&group);
            for writer in 0..3 {
                let load = &load;
                scope.spawn(move || load.write(writer));
            }
            for _ in 0..3 {
                load.wait_for_writes("writes");
                let old = group.leader().status().replica;
                group.lose_power(old);
                load.follow(&group);
                group.other_leader(old);
                load.wait_for_writes("writes without it");
                group.cluster.start(old).unwrap();
                load.follow(&group);
                let has = group.leader().applied_index();
                let back = group.cluster.replica(old).unwrap();
                wait_for("the one that came back", || back.applied_index() >= has);
            }
            load.stop.store(true, Ordering::Relaxed);
        });
        load.replicas.lock().unwrap().clear();
        group.agree();
        let tried = load.tried.into_inner().unwrap();
        for (key, last) in load.acknowledged.into_inner().unwrap() {
            for (replica, _) in group.cluster.replicas() {
                let value = group.on_disk(replica, &key).expect("it was acknowledged");
                let value: u64 = String::from_utf8(value).unwrap().parse().unwrap();
                assert!(value >= last && value <= tried[&key], "{key}: {value}, acknowledged {last}");
            }
        }
        group.finish();
    });
}
