//! Closing: what was accepted is answered truthfully, nobody is woken, no thread stays behind.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use storage_pipeline::{
    Error, Outcome, Storage,
    command::{RawCompareAndSwap, RawPut},
};

use crate::support::{Answer, PATIENCE, Tested, config, in_every_mode, wait_for};

fn put(key: &str, value: &str) -> RawPut {
    RawPut { key: key.into(), value: value.into() }
}

#[test]
fn what_was_proposed_is_applied_and_what_waited_never_runs() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        tested.observer.hold("Applying");
        let proposed = Answer::new();
        tested.storage.submit(put("k", "first"), proposed.callback());
        tested.observer.wait_held("Applying");
        let waiting: Vec<_> = (0..5).map(|_| Answer::new()).collect();
        waiting.iter().for_each(|answer| tested.storage.submit(put("k", "second"), answer.callback()));
        let closer = {
            let storage = tested.storage.clone();
            thread::spawn(move || storage.close())
        };
        for answer in &waiting {
            assert_eq!(answer.wait(), Outcome::NotExecuted(Error::Closed));
        }
        assert_eq!(proposed.count(), 0, "its fate is not known yet");
        tested.observer.let_go("Applying");
        closer.join().unwrap();
        assert!(proposed.wait().is_applied());
        assert!(tested.storage.raw_put(b"k", b"third") == Outcome::NotExecuted(Error::Closed));
        tested.finish();
        let again = Storage::open(config(mode, dir)).unwrap();
        assert_eq!(again.raw_get(b"k"), Outcome::Applied(Some(b"first".to_vec())));
    });
}

#[test]
fn two_commands_that_exclude_each_other_never_both_take_effect_across_a_close() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        tested.observer.hold("Applying");
        let swap = |value: &str| RawCompareAndSwap {
            key: b"k".to_vec(),
            previous: None,
            value: value.as_bytes().to_vec(),
        };
        let (one, other) = (Answer::new(), Answer::new());
        tested.storage.submit(swap("one"), one.callback());
        tested.observer.wait_held("Applying");
        tested.storage.submit(swap("other"), other.callback());
        let closer = {
            let storage = tested.storage.clone();
            thread::spawn(move || storage.close())
        };
        assert!(other.wait().is_not_executed());
        tested.observer.let_go("Applying");
        closer.join().unwrap();
        assert!(one.wait().is_applied());
        tested.finish();
        let again = Storage::open(config(mode, dir)).unwrap();
        assert_eq!(again.raw_get(b"k"), Outcome::Applied(Some(b"one".to_vec())));
    });
}

/// Submits until the store refuses, four commands at a time, and says how many. Acknowledged keys are kept.
fn submit_until_closed(
    storage: &Storage,
    prefix: &str,
    answered: &Arc<AtomicUsize>,
    acknowledged: &Arc<Mutex<Vec<String>>>,
) -> usize {
    for count in 1.. {
        let key = format!("{prefix}-{count}");
        let (answered, acknowledged) = (Arc::clone(answered), Arc::clone(acknowledged));
        let (sender, refused) = mpsc::channel();
        storage.submit(put(&key, "v"), move |outcome| {
            answered.fetch_add(1, Ordering::Relaxed);
            if outcome.is_applied() {
                acknowledged.lock().unwrap().push(key);
            }
            let _ = sender.send(outcome == Outcome::NotExecuted(Error::Closed));
        });
        if count % 4 == 0 && refused.recv_timeout(PATIENCE).unwrap() {
            return count;
        }
    }
    unreachable!("a store that is closed refuses");
}

#[test]
fn stopping_under_load_many_times_answers_everybody_once_and_keeps_what_was_acknowledged() {
    in_every_mode(|mode, dir| {
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        for round in 0..8 {
            let tested = Tested::open(config(mode, dir));
            let answered = Arc::new(AtomicUsize::new(0));
            let submitted: usize = thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|thread| {
                        let prefix = format!("{round}-{thread}");
                        let (tested, answered, acknowledged) = (&tested, &answered, &acknowledged);
                        scope.spawn(move || {
                            submit_until_closed(&tested.storage, &prefix, answered, acknowledged)
                        })
                    })
                    .collect();
                thread::sleep(Duration::from_millis(3 * round));
                tested.storage.close();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(answered.load(Ordering::Relaxed), submitted);
            tested.finish();
        }
        let again = Storage::open(config(mode, dir)).unwrap();
        let acknowledged = acknowledged.lock().unwrap();
        assert!(!acknowledged.is_empty());
        for key in acknowledged.iter() {
            assert_eq!(again.raw_get(key.as_bytes()), Outcome::Applied(Some(b"v".to_vec())), "{key}");
        }
    });
}

#[test]
fn the_last_handle_may_be_dropped_or_closed_in_a_callback() {
    in_every_mode(|mode, dir| {
        for explicit in [false, true] {
            let storage = Storage::open(config(mode, dir)).unwrap();
            let (sender, receiver) = mpsc::channel();
            let held = storage.clone();
            storage.submit(put("k", "v"), move |outcome| {
                if explicit {
                    held.close();
                }
                drop(held);
                sender.send(outcome).unwrap();
            });
            drop(storage);
            assert!(receiver.recv_timeout(PATIENCE).is_ok());
            // The directory is free again once the joiner is through.
            wait_for("the directory", || Storage::open(config(mode, dir)).is_ok());
        }
    });
}

#[test]
fn closing_twice_and_from_several_threads_is_closing_once() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| tested.storage.close());
            }
        });
        let refused = Answer::new();
        tested.storage.submit(put("k", "v"), refused.callback());
        assert_eq!(refused.wait(), Outcome::NotExecuted(Error::Closed));
        tested.finish();
    });
}
