//! The end of a store while it is busy: whatever a close or a fault interrupts, nothing is left behind and nobody waits.

use std::{panic, thread, time::Duration};

use storage_pipeline::{
    Error, Outcome, Storage,
    command::RawPut,
    observe::{FailPoint, Moment, Observe},
    storage::Parts,
};

use crate::support::{Answer, Tested, checked, config, in_every_mode, wait_for};

fn put(key: &str) -> RawPut {
    RawPut { key: key.into(), value: b"v".to_vec() }
}

fn submit_many(storage: &Storage, count: usize) -> Vec<Answer<()>> {
    let answers: Vec<_> = (0..count).map(|_| Answer::new()).collect();
    for (n, answer) in answers.iter().enumerate() {
        let key = format!("k{n}");
        match n % 2 {
            0 => storage.submit(checked(&key), answer.callback()),
            _ => storage.submit(put(&key), answer.callback()),
        }
    }
    answers
}

#[test]
fn a_thread_that_stops_leaves_no_message_in_its_queue() {
    in_every_mode(|mode, dir| {
        for (at, point) in [
            ("LogWriting", Some(FailPoint::LogWrite)),
            ("LogWriting", None),
            ("Applying", Some(FailPoint::DataWrite)),
            ("Applying", None),
            ("Processing", None),
        ] {
            let mut config = config(mode, &dir.join(format!("{at}-{point:?}")));
            config.worker_threads = 1;
            let tested = Tested::open(config.clone());
            tested.observer.hold(at);
            let mut answers = submit_many(&tested.storage, 1);
            tested.observer.wait_held(at);
            answers.extend(submit_many(&tested.storage, 30));
            match point {
                Some(point) => tested.observer.fail(point, 1),
                None => tested.observer.panic_at(at),
            }
            tested.observer.let_go(at);
            wait_for("the fault", || tested.storage.fault().is_some());
            answers.iter().for_each(|answer| drop(answer.wait()));
            tested.storage.close();
            tested.finish();
            assert!(Storage::open(config).unwrap().raw_put(b"k", b"v").is_applied());
        }
    });
}

#[test]
fn a_caller_that_a_close_overtakes_leaves_no_latch_behind() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        tested.observer.hold("Admitted");
        let answers: Vec<_> = (0..2).map(|_| Answer::new()).collect();
        thread::scope(|scope| {
            for answer in &answers {
                scope.spawn(|| tested.storage.submit(put("k"), answer.callback()));
            }
            tested.observer.wait_held("Admitted");
            tested.storage.close();
            tested.observer.let_go("Admitted");
        });
        answers.iter().for_each(|answer| assert_eq!(answer.wait(), Outcome::NotExecuted(Error::Closed)));
        tested.finish();
    });
}

#[test]
fn a_close_waits_for_all_that_was_proposed_however_far_apply_lags() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        config.max_apply_bytes = 1;
        let tested = Tested::open(config);
        tested.observer.hold("Applying");
        let answers = submit_many(&tested.storage, 50);
        wait_for("the proposals", || tested.observer.count("Proposed") == answers.len());
        thread::scope(|scope| {
            let closer = scope.spawn(|| tested.storage.close());
            thread::sleep(Duration::from_millis(50));
            assert!(!closer.is_finished());
            tested.observer.let_go("Applying");
        });
        answers.iter().for_each(|answer| assert_eq!(answer.wait(), Outcome::Applied(())));
        tested.finish();
    });
}

/// An observer with a fault of its own, which shows whenever a caller was told.
struct Broken;

impl Observe for Broken {
    fn moment(&self, moment: Moment) {
        if matches!(moment, Moment::CallerTold { .. }) {
            panic!("this observer panics on purpose");
        }
    }
}

#[test]
fn an_observer_that_panics_again_and_again_keeps_no_caller_waiting_and_no_store_open() {
    in_every_mode(|mode, dir| {
        let parts = Parts::on_disk(dir).unwrap();
        let storage =
            Storage::open_with(config(mode, dir), parts, Some(std::sync::Arc::new(Broken))).unwrap();
        let answers = submit_many(&storage, 20);
        answers.iter().for_each(|answer| drop(answer.wait()));
        wait_for("the fault", || storage.fault().is_some());
        let closed = panic::catch_unwind(panic::AssertUnwindSafe(|| storage.close()));
        assert!(closed.is_ok(), "the store is not closed");
        assert!(storage.in_flight().is_quiescent());
        drop(storage);
        assert!(Storage::open(config(mode, dir)).is_ok(), "a thread of the store is left");
    });
}
