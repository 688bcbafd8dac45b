//! What callbacks and observers may do, wherever they run: nothing blocks for them, and a panic harms nobody else.

use std::{
    panic,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{Error, Outcome, command::RawPut, observe::FailPoint};

use crate::support::{Answer, PATIENCE, Tested, checked, config, in_every_mode, wait_for, with_more_time};

fn put(key: &str) -> RawPut {
    RawPut { key: key.into(), value: b"v".to_vec() }
}

#[test]
fn a_timestamp_in_a_callback_waits_for_nobody_who_waits_for_that_thread() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let (entered, entering) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let storage = tested.storage.clone();
        tested.storage.submit(put("k"), move |_| {
            entered.send(()).unwrap();
            gone.recv().unwrap();
            sender.send(storage.timestamp()).unwrap();
        });
        entering.recv_timeout(PATIENCE).unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(|| tested.storage.timestamp());
            wait_for("the other's window", || tested.observer.count("Admitted") >= 2);
            go.send(()).unwrap();
            let mine = receiver.recv_timeout(PATIENCE).expect("the callback is blocked");
            // Where the callback's thread was not needed, the other's window is there.
            assert!(matches!(mine, Outcome::Applied(_) | Outcome::NotExecuted(Error::WouldBlockPipeline)));
            assert!(other.join().unwrap().is_applied());
        });
        tested.finish();
    });
}

#[test]
fn whoever_waits_for_anothers_window_of_timestamps_waits_no_longer_than_for_his_own() {
    in_every_mode(|mode, dir| {
        with_more_time(Duration::from_millis(200), |timeout| {
            let mut config = config(mode, dir);
            config.default_timeout = timeout;
            let tested = Tested::open(config);
            tested.observer.hold("Applying");
            let started = Instant::now();
            thread::scope(|scope| {
                for _ in 0..12 {
                    scope.spawn(|| tested.storage.timestamp());
                }
            });
            let waited = started.elapsed();
            tested.observer.let_go("Applying");
            tested.finish();
            // One after the other they would take twelve times as long.
            (waited < timeout * 5).then_some(())
        });
    });
}

#[test]
fn a_blocking_call_is_refused_in_every_callback_on_whatever_thread_it_runs() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        // Refused while its latch is held, and refused at the door.
        for (point, key) in [(Some(FailPoint::SnapshotRefused), "k"), (None, "")] {
            if let Some(point) = point {
                tested.observer.fail(point, 1);
            }
            let (sender, receiver) = mpsc::channel();
            let storage = tested.storage.clone();
            tested.storage.submit(checked(key), move |_| {
                let _ = sender.send(storage.raw_put(b"k", b"w"));
            });
            let refused = receiver.recv_timeout(PATIENCE).expect("the callback runs");
            assert_eq!(refused, Outcome::NotExecuted(Error::WouldBlockPipeline));
        }
        assert!(tested.storage.raw_put(b"k", b"v").is_applied());
        tested.finish();
    });
}

#[test]
fn an_observer_that_panics_on_the_callers_thread_poisons_the_store_like_any_other() {
    in_every_mode(|mode, dir| {
        for at in ["Admitted", "LatchesHeld", "SnapshotTaken"] {
            let tested = Tested::open(config(mode, &dir.join(at)));
            tested.observer.panic_at(at);
            let answer = Answer::new();
            let submitted =
                panic::AssertUnwindSafe(|| tested.storage.submit(checked("k"), answer.callback()));
            let _ = panic::catch_unwind(submitted);
            assert!(matches!(answer.wait(), Outcome::NotExecuted(Error::Poisoned(_))), "{at}");
            assert!(tested.storage.fault().is_some());
            tested.storage.close();
            tested.finish();
        }
    });
}

/// What a panic carries, whose destructor panics with another one.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic::panic_any(Bomb(self.0 - 1));
        }
    }
}

#[test]
fn a_panic_whose_payload_panics_when_it_is_dropped_harms_nobody_else() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        tested.storage.submit(put("k"), |_| panic::panic_any(Bomb(5)));
        wait_for("the panic", || tested.storage.callback_panics() == 1 || tested.storage.fault().is_some());
        assert_eq!(tested.storage.fault(), None);
        assert!(tested.storage.raw_put(b"k", b"v").is_applied());
        tested.finish();
    });
}
