//! What a callback that does not return holds up: what `docs/completion-modes.md` says for each mode, and nothing else.

use std::{sync::mpsc, thread, time::Duration};

use storage_pipeline::{Cause, CompletionMode, Error, Outcome, command::RawPut};

use crate::{
    group::{Group, in_every_mode_at_once},
    support::{Answer, PATIENCE, Tested, config, in_every_mode, wait_for, with_more_time},
};

/// Longer than anything takes that is not held up.
const A_WHILE: Duration = Duration::from_millis(60);
const DEADLINE: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_millis(30);

fn put(key: &str) -> RawPut {
    RawPut { key: key.into(), value: b"v".to_vec() }
}

/// A callback that has begun and does not return before it is let go.
struct Stuck {
    thread: String,
    go: mpsc::Sender<()>,
}

impl Stuck {
    /// Submits a write whose callback blocks, lets it happen, and waits until it does.
    fn submit(tested: &Tested, key: &str, timeout: Duration, happens: impl FnOnce()) -> Self {
        let (entered, entering) = mpsc::channel();
        let (go, gone) = mpsc::channel();
        tested.storage.submit_within(put(key), timeout, move |_| {
            entered.send(thread::current().name().unwrap_or("unnamed").to_owned()).unwrap();
            gone.recv().unwrap();
        });
        happens();
        let thread = entering.recv_timeout(PATIENCE).expect("the callback runs");
        Self { thread, go }
    }

    fn let_go(self) {
        self.go.send(()).unwrap();
    }
}

/// How far a later write of another key gets meanwhile: is it in the log, is it told?
fn gets_through(mode: CompletionMode) -> (bool, bool) {
    match mode {
        CompletionMode::SchedulerThread => (false, false),
        CompletionMode::ApplyNotify | CompletionMode::ApplyAll | CompletionMode::ApplyNotifyWorkerRelease => {
            (true, false)
        }
        CompletionMode::WorkerAll => (true, true),
    }
}

#[test]
fn a_callback_that_blocks_holds_up_what_its_mode_says_and_nothing_else() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        assert!(tested.storage.raw_put(b"old", b"v").is_applied());
        wait_for("quiescence", || tested.storage.in_flight().is_quiescent());
        let stuck = Stuck::submit(&tested, "slow", PATIENCE, || {});
        let (written, applied) = (tested.observer.count("LogWritten"), tested.observer.count("Applied"));
        // Whoever is held up hears of his deadline, and the truth.
        with_more_time(DEADLINE, |deadline| {
            let (later, successor) = (Answer::new(), Answer::new());
            tested.storage.submit_within(put("later"), deadline, later.callback());
            tested.storage.submit_within(put("slow"), deadline, successor.callback());
            // Reads need neither the apply thread nor the scheduler thread, nor more than one worker.
            assert_eq!(tested.storage.raw_get(b"old"), Outcome::Applied(Some(b"v".to_vec())));
            // The key itself is free after the callback, in every mode.
            assert_eq!(successor.wait(), Outcome::NotExecuted(Error::DeadlineExceeded));
            let got = match later.wait() {
                Outcome::Applied(()) => (true, true),
                Outcome::Indeterminate(Cause::DeadlineExceeded) => (true, false),
                outcome => {
                    assert_eq!(outcome, Outcome::NotExecuted(Error::DeadlineExceeded));
                    (false, false)
                }
            };
            assert!(got <= gets_through(mode), "{got:?}");
            (got == gets_through(mode)).then_some(())
        });
        let (is_logged, is_told) = gets_through(mode);
        thread::sleep(A_WHILE);
        assert_eq!(tested.observer.count("LogWritten") > written, is_logged);
        assert_eq!(tested.observer.count("Applied") > applied, is_told);

        assert_eq!(tested.storage.fault(), None);
        stuck.let_go();
        assert!(tested.storage.raw_put(b"slow", b"w").is_applied());
        let arrived = tested.storage.raw_get(b"later").into_result().unwrap().is_some();
        assert_eq!(arrived, is_logged);
        tested.finish();
    });
}

#[test]
fn whoever_is_in_one_batch_with_a_callback_that_blocks_is_applied_and_hears_of_it_later() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        // Held, so that the next two are proposed, written and applied together.
        tested.observer.hold("LogWriting");
        let first = Answer::new();
        tested.storage.submit(put("first"), first.callback());
        tested.observer.wait_held("LogWriting");
        let neighbour = Answer::new();
        let stuck = Stuck::submit(&tested, "slow", PATIENCE, || {
            tested.storage.submit(put("neighbour"), neighbour.callback());
            wait_for("both on their way", || tested.observer.count("LatchesHeld") == 3);
            wait_for("both at the raftstore", || tested.storage.in_flight().queued == 2);
            tested.observer.let_go("LogWriting");
        });
        let teller = match mode {
            CompletionMode::SchedulerThread => "scheduler",
            CompletionMode::WorkerAll => "worker",
            _ => "apply",
        };
        assert!(stuck.thread.starts_with(teller), "{}", stuck.thread);
        assert_eq!(tested.storage.raw_get(b"neighbour"), Outcome::Applied(Some(b"v".to_vec())));
        thread::sleep(A_WHILE);
        assert_eq!(neighbour.count(), 0);
        stuck.let_go();
        assert_eq!(neighbour.wait(), Outcome::Applied(()));
        assert!(first.wait().is_applied());
        tested.finish();
    });
}

#[test]
fn a_callback_that_blocks_at_its_deadline_holds_up_other_deadlines_and_no_write() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let stuck = with_more_time(SOON, |deadline| {
            tested.observer.hold("Applying");
            let stuck = Stuck::submit(&tested, "late", deadline, || {});
            tested.observer.let_go("Applying");
            if stuck.thread == "maintenance" {
                return Some(stuck);
            }
            // Its time was up before it was proposed, and whoever had it then said so.
            stuck.let_go();
            None
        });
        assert!(tested.storage.raw_put(b"k", b"v").is_applied());
        // The next one whose time is up hears of it when its fate is known.
        with_more_time(SOON, |deadline| {
            tested.observer.hold("Applying");
            let next = Answer::new();
            tested.storage.submit_within(put("next"), deadline, next.callback());
            wait_for("apply", || tested.observer.is_held("Applying") || next.count() > 0);
            if next.count() > 0 {
                assert_eq!(next.wait(), Outcome::NotExecuted(Error::DeadlineExceeded));
                tested.observer.let_go("Applying");
                return None;
            }
            thread::sleep(deadline + A_WHILE);
            assert_eq!(next.count(), 0);
            tested.observer.let_go("Applying");
            assert_eq!(next.wait(), Outcome::Applied(()));
            Some(())
        });
        stuck.let_go();
        tested.finish();
    });
}

#[test]
fn a_callback_that_outlasts_an_election_costs_no_leadership() {
    let is_steady = |mode, tick| {
        let mut config = config(mode, "in-memory".as_ref());
        config.tick = tick;
        let group = Group::with_config(config);
        group.agree();
        let leader = group.leader();
        let term = leader.status().term;
        let answers: Vec<_> = (0..3).map(|_| Answer::new()).collect();
        for (n, answer) in answers.iter().enumerate() {
            let (callback, takes) = (answer.callback(), group.election_timeout());
            leader.submit(put(&format!("k{n}")), move |outcome| {
                thread::sleep(takes);
                callback(outcome);
            });
        }
        // A command that is behind them in one batch waits for all three.
        let all_applied = answers.iter().all(|answer| answer.wait() == Outcome::Applied(()));
        let status = leader.status();
        drop(leader);
        group.finish();
        let leads_on = status.term == term && status.leader == Some(status.replica);
        (all_applied && leads_on).then_some(())
    };
    in_every_mode_at_once(|mode| with_more_time(Duration::from_millis(60), |tick| is_steady(mode, tick)));
}
