//! Faults that systems of this kind have had, each as a test of its whole kind. `docs/testing.md` has the table.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use storage_pipeline::{
    Cause, Error, Outcome, ReadPolicy,
    command::{RawGet, RawPut},
    observe::FailPoint,
};

use crate::support::{
    Answer, PATIENCE, Tested, checked, config, held, in_every_mode, wait_for, with_more_time,
};

fn put(key: &str) -> RawPut {
    RawPut { key: key.into(), value: b"v".to_vec() }
}

#[test]
fn every_refusal_on_the_way_answers_once_with_its_own_error_and_frees_the_key() {
    let refusals = [
        (FailPoint::SnapshotRefused, Error::SchedTooBusy),
        (FailPoint::ProposalRefused, Error::SchedTooBusy),
        (FailPoint::RaftDropsProposal, Error::NotLeader { leader: None }),
    ];
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        for (point, error) in refusals.clone() {
            tested.observer.fail(point, 1);
            let refused = Answer::new();
            tested.storage.submit(checked("k"), refused.callback());
            assert_eq!(refused.wait(), Outcome::NotExecuted(error.clone()), "{point:?}");
            assert!(tested.storage.execute(checked("k")).is_applied(), "{point:?} left the key latched");
            if point == FailPoint::SnapshotRefused {
                continue;
            }
            tested.observer.fail(point, 1);
            let refused = Answer::new();
            tested.storage.submit(put("k"), refused.callback());
            assert_eq!(refused.wait(), Outcome::NotExecuted(error), "{point:?}");
            assert!(tested.storage.raw_put(b"k", b"v").is_applied(), "{point:?} left the key latched");
        }
        assert_eq!(tested.observer.failures.load(std::sync::atomic::Ordering::Relaxed), 5);
        tested.finish();
    });
}

#[test]
fn refused_commands_wake_those_who_wait_behind_them() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let (first, waiting) = held(&tested, "Processing", 50, checked);
        // Raft refuses the first and the next 24; the others must still get their turn.
        tested.observer.fail(FailPoint::RaftDropsProposal, 25);
        tested.observer.let_go("Processing");
        assert!(first.wait().is_not_executed());
        let outcomes: Vec<_> = waiting.iter().map(Answer::wait).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_not_executed()).count(), 24);
        tested.finish();
    });
}

#[test]
fn a_long_row_of_refused_waiters_is_a_loop_and_no_recursion() {
    in_every_mode(|mode, dir| {
        let row = 10_000;
        let tested = Tested::open(config(mode, dir));
        for (point, looks) in [(FailPoint::SnapshotRefused, true), (FailPoint::ProposalRefused, false)] {
            let (first, waiting) = match looks {
                true => held(&tested, "Applying", row, checked),
                false => held(&tested, "Applying", row, put),
            };
            tested.observer.fail(point, row);
            tested.observer.let_go("Applying");
            assert!(first.wait().is_applied());
            for answer in &waiting {
                assert_eq!(answer.wait(), Outcome::NotExecuted(Error::SchedTooBusy));
            }
        }
        tested.finish();
    });
}

#[test]
fn a_read_that_raft_drops_is_answered_and_the_next_one_works() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        config.read_policy = ReadPolicy::ReadIndex;
        let tested = Tested::open(config);
        tested.observer.fail(FailPoint::RaftDropsRead, 2);
        let get = || RawGet { key: b"k".to_vec() };
        assert_eq!(tested.storage.execute(get()), Outcome::NotExecuted(Error::NotLeader { leader: None }));
        // The snapshot of a write goes the same way.
        let refused = tested.storage.execute(checked("k"));
        assert_eq!(refused, Outcome::NotExecuted(Error::NotLeader { leader: None }));
        assert!(tested.storage.execute(checked("k")).is_applied());
        assert!(tested.storage.raw_put(b"k", b"v").is_applied());
        assert_eq!(tested.storage.execute(get()), Outcome::Applied(Some(b"v".to_vec())));
        tested.finish();
    });
}

#[test]
fn a_full_raftstore_refuses_with_a_retryable_error_and_the_callers_data_unharmed() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        config.raftstore_mailbox = 1;
        let tested = Tested::open(config);
        tested.observer.hold("LogWriting");
        let answers: Vec<_> = (0..20).map(|_| Answer::new()).collect();
        for (n, answer) in answers.iter().enumerate() {
            tested.storage.submit(put(&format!("k{n}")), answer.callback());
        }
        wait_for("refusals", || answers.iter().filter(|answer| answer.count() == 1).count() >= 18);
        tested.observer.let_go("LogWriting");
        for answer in &answers {
            assert!(matches!(
                answer.wait(),
                Outcome::Applied(()) | Outcome::NotExecuted(Error::SchedTooBusy)
            ));
        }
        for n in 0..20 {
            // A mailbox of one place is full now and then, with a report of apply for example.
            wait_for("a free key", || tested.storage.raw_put(format!("k{n}").as_bytes(), b"w").is_applied());
        }
        tested.finish();
    });
}

#[test]
fn a_deadline_that_passes_after_the_proposal_answers_indeterminate_and_settles_nothing() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        with_more_time(Duration::from_millis(40), |deadline| {
            tested.observer.hold("Applying");
            let late = Answer::new();
            tested.storage.submit_within(put("k"), deadline, late.callback());
            if late.wait() == Outcome::Indeterminate(Cause::DeadlineExceeded) {
                return Some(());
            }
            // It was over before the proposal.
            assert_eq!(late.wait(), Outcome::NotExecuted(Error::DeadlineExceeded));
            tested.observer.let_go("Applying");
            wait_for("quiescence", || tested.storage.in_flight().is_quiescent());
            None
        });
        // The latch stays: whoever comes next must not overtake the entry that is on its way.
        let next = Answer::new();
        tested.storage.submit(RawPut { key: b"k".to_vec(), value: b"next".to_vec() }, next.callback());
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(next.count(), 0);
        assert_eq!(tested.storage.in_flight().commands, 2);
        tested.observer.let_go("Applying");
        assert!(next.wait().is_applied());
        assert_eq!(tested.storage.raw_get(b"k"), Outcome::Applied(Some(b"next".to_vec())));
        tested.finish();
    });
}

#[test]
fn a_deadline_that_passes_before_the_proposal_is_a_promise() {
    in_every_mode(|mode, dir| {
        for at in ["Processing", "Proposing"] {
            let tested = Tested::open(config(mode, &dir.join(at)));
            with_more_time(Duration::from_millis(40), |deadline| {
                tested.observer.hold(at);
                let late = Answer::new();
                tested.storage.submit_within(checked("k"), deadline, late.callback());
                assert_eq!(late.wait(), Outcome::NotExecuted(Error::DeadlineExceeded));
                // It may have been over on the way.
                let came_so_far = tested.observer.is_held(at);
                tested.observer.let_go(at);
                wait_for("quiescence", || tested.storage.in_flight().is_quiescent());
                came_so_far.then_some(())
            });
            assert_eq!(tested.observer.count("Proposed"), 0, "it was promised that it never runs");
            tested.finish();
        }
    });
}

#[test]
fn waiters_that_expire_in_the_queue_leave_no_latch_behind() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let (first, _) = held(&tested, "Applying", 0, put);
        let expiring: Vec<_> = (0..10).map(|_| Answer::new()).collect();
        for answer in &expiring {
            tested.storage.submit_within(put("k"), Duration::from_millis(30), answer.callback());
        }
        for answer in &expiring {
            assert_eq!(answer.wait(), Outcome::NotExecuted(Error::DeadlineExceeded));
        }
        tested.observer.let_go("Applying");
        assert!(first.wait().is_applied());
        assert!(tested.storage.raw_put(b"k", b"v").is_applied());
        tested.finish();
    });
}

#[test]
fn waiters_count_against_the_bound() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        config.max_in_flight_commands = 4;
        let tested = Tested::open(config);
        tested.observer.hold("LogWriting");
        let accepted: Vec<_> = (0..4).map(|_| Answer::new()).collect();
        accepted.iter().for_each(|answer| tested.storage.submit(put("k"), answer.callback()));
        let refused = Answer::new();
        tested.storage.submit(put("other"), refused.callback());
        assert_eq!(refused.count(), 1, "a refusal is immediate");
        assert_eq!(refused.wait(), Outcome::NotExecuted(Error::SchedTooBusy));
        tested.observer.let_go("LogWriting");
        accepted.iter().for_each(|answer| assert!(answer.wait().is_applied()));
        tested.finish();
    });
}

#[test]
fn bytes_count_against_the_bound_and_a_command_larger_than_it_runs_alone() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        config.max_in_flight_bytes = 1000;
        let tested = Tested::open(config);
        tested.observer.hold("LogWriting");
        let large = Answer::new();
        tested.storage.submit(RawPut { key: b"k".to_vec(), value: vec![0; 5000] }, large.callback());
        let refused = Answer::new();
        tested.storage.submit(put("other"), refused.callback());
        assert_eq!(refused.wait(), Outcome::NotExecuted(Error::SchedTooBusy));
        tested.observer.let_go("LogWriting");
        assert!(large.wait().is_applied());
        tested.finish();
    });
}

#[test]
fn a_callback_that_blocks_stops_neither_raft_nor_the_log() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let (release, blocked) = mpsc::channel::<()>();
        let (entered, entering) = mpsc::channel();
        tested.storage.submit(put("slow"), move |_| {
            entered.send(()).unwrap();
            blocked.recv().unwrap();
        });
        entering.recv_timeout(PATIENCE).unwrap();
        let written = tested.observer.count("LogWritten");
        // Only the mode whose scheduler runs the callback and the admission stops taking writes.
        let is_stopped = matches!(mode, storage_pipeline::CompletionMode::SchedulerThread);
        with_more_time(Duration::from_millis(300), |deadline| {
            let answers: Vec<_> = (0..8).map(|_| Answer::new()).collect();
            for (n, answer) in answers.iter().enumerate() {
                tested.storage.submit_within(put(&format!("k{n}")), deadline, answer.callback());
            }
            // Nobody waits beyond the deadline, whatever a stranger's callback does.
            answers.iter().for_each(|answer| drop(answer.wait()));
            (is_stopped || tested.observer.count("LogWritten") > written).then_some(())
        });
        release.send(()).unwrap();
        tested.finish();
    });
}

#[test]
fn entries_without_a_caller_answer_nobody() {
    in_every_mode(|mode, dir| {
        for round in 0..3 {
            // Each opening has an empty entry of its new term.
            let tested = Tested::open(config(mode, dir));
            let answer = Answer::new();
            tested.storage.submit(put(&format!("k{round}")), answer.callback());
            assert!(answer.wait().is_applied());
            let observer = Arc::clone(&tested.observer);
            // Its caller runs before the observer hears that it was told.
            tested.finish();
            assert_eq!(observer.count("CallerTold"), 1);
        }
    });
}
