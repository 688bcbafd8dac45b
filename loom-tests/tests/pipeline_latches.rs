//! Latches: one holder a key, everybody gets through, and whoever waits is handed out by exactly one release.

#[cfg(not(storage_pipeline_loom))]
compile_error!("the models of the pipeline need --cfg storage_pipeline_loom in RUSTFLAGS");

use std::sync::Arc;

use loom::thread;
use loom_tests::model;
use loom_tests::pipeline::{Keys, Latching};
use storage_pipeline::scheduler::latches::Latches;

/// Every hash is below this.
const KEYS: u64 = 4;

/// Latches, and the data under the keys. `Arc` is std's, so that only the latches bring order.
#[derive(Clone)]
struct Scene {
    latches: Arc<Latches<Latching>>,
    keys: Keys,
}

impl Scene {
    fn new(slots: usize) -> Self {
        Self { latches: Arc::new(Latches::new(slots)), keys: Keys::new(KEYS as usize) }
    }

    /// Runs a command, and then whoever its release hands out, as the threads of the pipeline do.
    fn run(&self, id: u64, hashes: &'static [u64]) {
        self.go_on(self.latches.acquire(Latching { id, hashes }).into_iter().collect());
    }

    fn go_on(&self, mut ready: Vec<Latching>) {
        while let Some(holder) = ready.pop() {
            self.keys.write(holder.hashes, holder.id);
            self.latches.release(holder.id, holder.hashes, &mut ready);
        }
    }

    /// Every command ran once under each of its keys, and nothing is held or waits.
    fn check(&self, commands: &[&'static [u64]]) {
        for hash in 0..KEYS {
            let mut writers = self.keys.writers(hash);
            writers.sort_unstable();
            let wanted: Vec<_> = (0u64..)
                .zip(commands)
                .filter(|(_, hashes)| hashes.contains(&hash))
                .map(|(id, _)| id)
                .collect();
            assert_eq!(writers, wanted, "who ran under key {hash}");
        }
        assert_eq!(self.latches.counts(), (0, 0), "nothing is held and nobody waits");
    }
}

/// Each command on a thread of its own.
fn race(slots: usize, commands: &'static [&'static [u64]]) {
    model(move || {
        let scene = Scene::new(slots);
        let others: Vec<_> = (1u64..)
            .zip(&commands[1..])
            .map(|(id, hashes)| {
                let scene = scene.clone();
                thread::spawn(move || scene.run(id, hashes))
            })
            .collect();
        scene.run(0, commands[0]);
        for other in others {
            other.join().unwrap();
        }
        scene.check(commands);
    });
}

#[test]
fn two_on_one_key() {
    race(4, &[&[1], &[1]]);
}

#[test]
fn two_over_the_same_two_keys() {
    race(4, &[&[1, 2], &[1, 2]]);
}

#[test]
fn two_that_overlap_in_the_others_last_key() {
    race(4, &[&[1, 2], &[2, 3]]);
}

#[test]
fn three_on_one_key() {
    race(4, &[&[1], &[1], &[1]]);
}

/// Whichever of the first two keys the third command comes by first, the other one is held by somebody else.
#[test]
fn one_key_each_and_one_over_both() {
    race(4, &[&[1], &[2], &[1, 2]]);
}

/// Everybody wants a key of each of the others: without one order of acquiring, all three would wait in a ring.
#[test]
fn three_in_a_ring() {
    race(4, &[&[1, 2], &[2, 3], &[1, 3]]);
}

#[test]
fn two_over_two_keys_that_share_a_slot() {
    race(1, &[&[1, 2], &[1, 2]]);
}

#[test]
fn three_whose_keys_share_a_slot() {
    race(1, &[&[1], &[3], &[1, 3]]);
}

/// The slots spread locks and nothing else: commands on different keys never wait for each other.
#[test]
fn keys_that_share_a_slot_are_held_by_two() {
    model(|| {
        let scene = Scene::new(1);
        let other = scene.clone();
        let other = thread::spawn(move || other.latches.acquire(Latching { id: 1, hashes: &[3] }));
        let here = scene.latches.acquire(Latching { id: 0, hashes: &[1] }).expect("nobody else wants it");
        let there = other.join().unwrap().expect("nobody else wants it");
        assert_eq!(scene.latches.counts(), (2, 0));
        scene.go_on(vec![here, there]);
        scene.check(&[&[1], &[3]]);
    });
}

/// One holds, one waits, and the release races a third that acquires: both are handed out, each by one release.
#[test]
fn release_with_a_waiter_races_acquire() {
    model(|| {
        let scene = Scene::new(4);
        let holder = scene.latches.acquire(Latching { id: 0, hashes: &[1] }).expect("the first");
        assert!(scene.latches.acquire(Latching { id: 1, hashes: &[1, 2] }).is_none(), "it queues");
        let other = scene.clone();
        let third = thread::spawn(move || other.run(2, &[1, 2]));
        scene.go_on(vec![holder]);
        third.join().unwrap();
        scene.check(&[&[1], &[1, 2], &[1, 2]]);
        assert_eq!(scene.keys.writers(1), [0, 1, 2], "who waited is not overtaken");
        assert_eq!(scene.keys.writers(2), [1, 2], "nor by the next key");
    });
}

/// Two holders release at once what a third needs both of: it goes on from where it queued, and is handed out once.
#[test]
fn two_releases_race_for_one_waiter() {
    model(|| {
        let scene = Scene::new(4);
        let first = scene.latches.acquire(Latching { id: 0, hashes: &[1] }).expect("the first");
        let second = scene.latches.acquire(Latching { id: 1, hashes: &[2] }).expect("the first");
        assert!(scene.latches.acquire(Latching { id: 2, hashes: &[1, 2] }).is_none(), "it queues");
        let other = scene.clone();
        let other = thread::spawn(move || other.go_on(vec![second]));
        scene.go_on(vec![first]);
        other.join().unwrap();
        scene.check(&[&[1], &[2], &[1, 2]]);
    });
}

/// Whoever waits is handed out by the release or by the end, never by both or by neither.
#[test]
fn release_races_the_end_of_the_latches() {
    model(|| {
        let latches = Arc::new(Latches::new(4));
        assert!(latches.acquire(Latching { id: 1, hashes: &[1, 2] }).is_some());
        assert!(latches.acquire(Latching { id: 2, hashes: &[1] }).is_none());
        assert!(latches.acquire(Latching { id: 3, hashes: &[2] }).is_none());
        let other = Arc::clone(&latches);
        let releaser = thread::spawn(move || {
            let mut ready = Vec::new();
            other.release(1, &[1, 2], &mut ready);
            ready
        });
        let mut out = latches.discard();
        let ready = releaser.join().unwrap();
        ready.iter().for_each(|woken| latches.release(woken.id, woken.hashes, &mut out));
        let mut ids: Vec<_> = out.iter().chain(&ready).map(|waiter| waiter.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [2, 3]);
        assert_eq!(latches.counts(), (0, 0));
    });
}
