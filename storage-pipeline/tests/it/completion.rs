//! Who tells the caller, who releases the latches, in which order, and what a callback may do.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, mpsc},
};

use storage_pipeline::{
    CompletionMode, Error, Outcome, ReadPolicy,
    command::{RawCompareAndSwap, RawGet, RawPut},
    observe::Moment,
    region::{RegionContext, RegionEpoch},
};

use crate::support::{Answer, PATIENCE, Tested, checked, config, in_every_mode, wait_for};

fn put(key: &str, value: &str) -> RawPut {
    RawPut { key: key.into(), value: value.into() }
}

fn get(key: &str) -> RawGet {
    RawGet { key: key.into() }
}

/// The groups of threads that reached a kind of moment, without the numbers of the workers.
fn groups(tested: &Tested, wanted: &str) -> HashSet<String> {
    let threads = tested.observer.threads(wanted);
    threads.iter().map(|name| name.split('-').next().unwrap().to_owned()).collect()
}

#[test]
fn each_step_runs_on_the_thread_that_the_mode_names() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        // All on one key, so that every command but the first is woken by its predecessor.
        let answers: Vec<_> = (0..40).map(|_| Answer::new()).collect();
        for answer in &answers {
            tested.storage.submit(checked("k"), answer.callback());
        }
        answers.iter().for_each(|answer| assert!(answer.wait().is_applied()));
        wait_for("the last release", || tested.observer.count("Released") == answers.len());

        let (teller, releaser) = match mode {
            CompletionMode::SchedulerThread => ("scheduler", "scheduler"),
            CompletionMode::ApplyNotify => ("apply", "scheduler"),
            CompletionMode::ApplyAll => ("apply", "apply"),
            CompletionMode::WorkerAll => ("worker", "worker"),
            CompletionMode::ApplyNotifyWorkerRelease => ("apply", "worker"),
        };
        assert_eq!(groups(&tested, "CallerTold"), [teller.to_owned()].into());
        assert_eq!(groups(&tested, "Released"), [releaser.to_owned()].into());
        assert_eq!(groups(&tested, "Processing"), ["worker".to_owned()].into());
        assert_eq!(groups(&tested, "Proposed"), ["raftstore".to_owned()].into());
        assert_eq!(groups(&tested, "Applied"), ["apply".to_owned()].into());
        let starters = groups(&tested, "LatchesHeld");
        assert!(starters.contains(releaser), "{starters:?}");
        assert!(!starters.contains("raftstore"));
        assert_eq!(starters.contains("apply"), mode == CompletionMode::ApplyAll, "{starters:?}");
        tested.finish();
    });
}

#[test]
fn a_write_that_reads_nothing_takes_no_snapshot_and_no_worker_and_keeps_its_turn() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let puts: Vec<_> = (0..20).map(|_| Answer::new()).collect();
        puts.iter().for_each(|answer| tested.storage.submit(put("k", "v"), answer.callback()));
        puts.iter().for_each(|answer| assert!(answer.wait().is_applied()));
        for skipped in ["SnapshotTaken", "Processing"] {
            assert_eq!(tested.observer.count(skipped), 0, "{skipped}");
        }
        let named = RegionContext { id: 1, epoch: Some(RegionEpoch::default()) };
        assert!(tested.storage.execute_in(named, put("k", "v")).is_applied());
        for looked in ["SnapshotTaken", "Processing"] {
            assert_eq!(
                tested.observer.count(looked),
                1,
                "only a leader with a lease knows the epoch: {looked}"
            );
        }
        // Between two that look, all on one key: each sees what the one before it wrote.
        let swaps: Vec<_> = (0..20).map(|_| Answer::new()).collect();
        for (n, answer) in swaps.iter().enumerate() {
            tested.storage.submit(put("k", &n.to_string()), Answer::new().callback());
            let previous = Some(n.to_string().into_bytes());
            let swap = RawCompareAndSwap { key: b"k".to_vec(), previous, value: b"swapped".to_vec() };
            tested.storage.submit(swap, answer.callback());
        }
        for answer in &swaps {
            assert!(matches!(answer.wait(), Outcome::Applied(result) if result.succeeded));
        }
        tested.finish();
    });
}

#[test]
fn the_batch_is_written_and_the_index_published_before_any_callback_and_every_callback_before_its_release() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let storage = tested.storage.clone();
        let answers: Vec<_> = (0..20).map(|_| Answer::new()).collect();
        for (n, answer) in answers.iter().enumerate() {
            storage.submit(put(&format!("k{n}"), "v"), answer.callback());
        }
        answers.iter().for_each(|answer| assert!(answer.wait().is_applied()));
        wait_for("the last release", || tested.observer.count("Released") == answers.len());
        let moments = tested.observer.moments().clone();
        let place = |wanted: &dyn Fn(&Moment) -> bool| moments.iter().position(|(_, moment)| wanted(moment));
        for (_, moment) in moments.iter() {
            let Moment::Proposed { cid, index, .. } = *moment else { continue };
            let applied = place(&|m| matches!(m, Moment::Applied { index: at, .. } if *at >= index)).unwrap();
            let telling = place(&|m| matches!(m, Moment::TellingCaller { cid: c, .. } if *c == cid)).unwrap();
            let told = place(&|m| matches!(m, Moment::CallerTold { cid: c, .. } if *c == cid)).unwrap();
            let released = place(&|m| matches!(m, Moment::Released { cid: c, .. } if *c == cid)).unwrap();
            assert!(applied < telling && telling < told && told < released, "command {cid}");
        }
        drop(storage);
        tested.finish();
    });
}

#[test]
fn a_callback_reads_its_own_write_under_the_lease_and_without() {
    in_every_mode(|mode, dir| {
        for policy in [ReadPolicy::Lease, ReadPolicy::ReadIndex] {
            let mut config = config(mode, &dir.join(format!("{policy:?}")));
            config.read_policy = policy;
            let tested = Tested::open(config);
            let read = Answer::new();
            let (storage, callback) = (tested.storage.clone(), read.callback());
            tested.storage.submit(put("k", "mine"), move |outcome| {
                assert!(outcome.is_applied());
                storage.submit(get("k"), callback);
            });
            assert_eq!(read.wait(), Outcome::Applied(Some(b"mine".to_vec())), "{policy:?}");
            let under_lease = tested
                .observer
                .moments()
                .iter()
                .any(|(_, moment)| matches!(moment, Moment::SnapshotTaken { under_lease: true, .. }));
            assert_eq!(under_lease, policy == ReadPolicy::Lease);
            tested.finish();
        }
    });
}

#[test]
fn a_blocking_call_in_a_callback_is_refused_and_says_so() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let (sender, receiver) = mpsc::channel();
        let storage = tested.storage.clone();
        tested.storage.submit(put("k", "v"), move |_| {
            let _ = sender.send((storage.execute(get("k")), storage.raw_put(b"k", b"w")));
        });
        let (read, write) = receiver.recv_timeout(PATIENCE).unwrap();
        assert_eq!(read, Outcome::NotExecuted(Error::WouldBlockPipeline));
        assert_eq!(write, Outcome::NotExecuted(Error::WouldBlockPipeline));
        tested.finish();
    });
}

#[test]
fn a_callback_may_submit_on_the_same_key_from_every_thread_that_can_run_it() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        // A chain of writes, each from the callback of the one before: it would overflow a stack if it recursed.
        fn next(storage: storage_pipeline::Storage, left: u32, done: mpsc::Sender<()>) {
            if left == 0 {
                done.send(()).unwrap();
                return;
            }
            let again = storage.clone();
            storage.submit(put("k", "v"), move |outcome| {
                assert!(outcome.is_applied());
                next(again, left - 1, done);
            });
        }
        let (sender, receiver) = mpsc::channel();
        next(tested.storage.clone(), 200, sender);
        receiver.recv_timeout(PATIENCE).unwrap();
        tested.finish();
    });
}

#[test]
fn a_panic_in_the_first_middle_or_last_callback_of_a_batch_harms_nobody_else() {
    in_every_mode(|mode, dir| {
        for bad in [0usize, 5, 9] {
            let tested = Tested::open(config(mode, &dir.join(bad.to_string())));
            // Held, so that the ten commands become one batch.
            tested.observer.hold("LogWriting");
            let blocker = Answer::new();
            tested.storage.submit(put("first", "v"), blocker.callback());
            tested.observer.wait_held("LogWriting");
            let answers: Vec<_> = (0..10).map(|_| Answer::<()>::new()).collect();
            for (n, answer) in answers.iter().enumerate() {
                let callback = answer.callback();
                tested.storage.submit(put(&format!("k{n}"), "v"), move |outcome| {
                    callback(outcome);
                    assert_ne!(n, bad, "this callback panics on purpose");
                });
            }
            wait_for("the proposals", || tested.observer.count("LatchesHeld") == 11);
            tested.observer.let_go("LogWriting");
            answers.iter().for_each(|answer| assert!(answer.wait().is_applied()));
            wait_for("the count", || tested.storage.callback_panics() == 1);
            // Nothing is applied twice or lost, and the panicking command's key is free.
            assert!(tested.storage.raw_put(format!("k{bad}").as_bytes(), b"w").is_applied());
            assert_eq!(tested.storage.fault(), None);
            tested.finish();
        }
    });
}

#[test]
fn commands_on_one_key_take_effect_in_their_order_and_on_many_keys_all_take_effect() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let order = Arc::new(Mutex::new(Vec::new()));
        for n in 0..100u32 {
            let order = Arc::clone(&order);
            tested.storage.submit(put("k", &n.to_string()), move |_| order.lock().unwrap().push(n));
        }
        wait_for("the answers", || order.lock().unwrap().len() == 100);
        assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
        assert_eq!(tested.storage.raw_get(b"k"), Outcome::Applied(Some(b"99".to_vec())));
        tested.finish();
    });
}
