//! What a callback that does not return holds up: what `docs/completion-modes.md` says for each mode, and nothing else.

use std::{sync::mpsc, thread, time::Duration};

use storage_pipeline::{Cause, CompletionMode, Error, Outcome, command::RawPut};

use crate::{
    group::{Group, in_every_mode_at_once},
    support::{Answer, Tested, config, in_every_mode, wait_for},
};

/// Longer than anything takes that is not held up.
const A_WHILE: Duration = Duration::from_millis(60);
const DEADLINE: Duration = Duration::from_millis(300);

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
        let thread = entering.recv_timeout(Duration::from_secs(10)).expect("the callback runs");
        Self { thread, go }
    }

    fn let_go(self) {
        self.go.send(()).unwrap();
    }
}

/// How far a later write of another key gets meanwhile: is it in the log, applied, told?
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
        let stuck = Stuck::submit(&tested, "slow", Duration::from_secs(60), || {});
        let (written, applied) = (tested.observer.count("LogWritten"), tested.observer.count("Applied"));
        let (later, successor) = (Answer::new(), Answer::new());
        tested.storage.submit_within(put("later"), DEADLINE, later.callback());
        tested.storage.submit_within(put("slow"), DEADLINE, successor.callback());

        // Reads need neither the apply thread nor the scheduler thread, nor more than one worker.
        assert_eq!(tested.storage.raw_get(b"old"), Outcome::Applied(Some(b"v".to_vec())));
        let (is_logged, is_told) = gets_through(mode);
        if is_logged {
            wait_for("the log", || tested.observer.count("LogWritten") > written);
        }
        if is_told {
            assert_eq!(later.wait(), Outcome::Applied(()));
        }
        thread::sleep(A_WHILE);
        assert_eq!(tested.observer.count("LogWritten") > written, is_logged);
        assert_eq!(tested.observer.count("Applied") > applied, is_told);
        // Whoever is held up hears of his deadline, and the truth.
        match later.wait() {
            Outcome::Applied(()) => assert!(is_told),
            Outcome::Indeterminate(Cause::DeadlineExceeded) => assert!(is_logged && !is_told),
            outcome => {
                assert!(!is_logged && outcome == Outcome::NotExecuted(Error::DeadlineExceeded), "{outcome:?}")
            }
        }
        // The key itself is free after the callback, in every mode.
        assert_eq!(successor.wait(), Outcome::NotExecuted(Error::DeadlineExceeded));

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
        // Held, so that the next two become one batch.
        tested.observer.hold("Applying");
        let first = Answer::new();
        tested.storage.submit(put("first"), first.callback());
        tested.observer.wait_held("Applying");
        let neighbour = Answer::new();
        let stuck = Stuck::submit(&tested, "slow", Duration::from_secs(60), || {
            tested.storage.submit(put("neighbour"), neighbour.callback());
            wait_for("the proposals", || tested.observer.count("Proposed") == 3);
            thread::sleep(A_WHILE);
            tested.observer.let_go("Applying");
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
        tested.observer.hold("Applying");
        let stuck = Stuck::submit(&tested, "late", Duration::from_millis(30), || {});
        assert_eq!(stuck.thread, "maintenance");
        tested.observer.let_go("Applying");
        assert!(tested.storage.raw_put(b"k", b"v").is_applied());
        // The next one whose time is up hears of it when its fate is known.
        tested.observer.hold("Applying");
        let next = Answer::new();
        tested.storage.submit_within(put("next"), Duration::from_millis(30), next.callback());
        tested.observer.wait_held("Applying");
        thread::sleep(A_WHILE);
        assert_eq!(next.count(), 0);
        tested.observer.let_go("Applying");
        assert_eq!(next.wait(), Outcome::Applied(()));
        stuck.let_go();
        tested.finish();
    });
}

#[test]
fn a_callback_that_outlasts_an_election_costs_no_leadership() {
    in_every_mode_at_once(|mode| {
        let mut config = config(mode, "in-memory".as_ref());
        config.tick = Duration::from_millis(60);
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
        answers.iter().for_each(|answer| assert_eq!(answer.wait(), Outcome::Applied(())));
        assert_eq!(leader.status().term, term, "the same one leads");
        assert_eq!(leader.status().leader, Some(leader.status().replica));
        drop(leader);
        group.finish();
    });
}
