//! The phase: whoever promises *not executed* and whoever hands the command to raft exclude each other.

#[cfg(not(storage_pipeline_loom))]
compile_error!("the models of the pipeline need --cfg storage_pipeline_loom in RUSTFLAGS");

use std::sync::Arc;

use loom::thread;
use loom_tests::model;
use loom_tests::pipeline::{Caller, model_of_tasks, tell_closed, tell_overdue};
use storage_pipeline::scheduler::task::{Abandoned, Phase};
use storage_pipeline::{Cause, Error, Outcome};

/// The word alone: raftstore against the deadline against close.
#[test]
fn propose_races_two_who_abandon() {
    model(|| {
        let phase = Arc::new(Phase::default());
        let (deadline, close) = (Arc::clone(&phase), Arc::clone(&phase));
        let deadline = thread::spawn(move || deadline.abandon());
        let close = thread::spawn(move || close.abandon());
        let proposed = phase.propose();
        let abandoned = [deadline, close].map(|other| other.join().unwrap());
        let wanted = if proposed { Abandoned::Proposed } else { Abandoned::NeverProposed };
        assert_eq!(abandoned, [wanted; 2], "one truth for both, and the other one for raft");
        assert_eq!(phase.is_abandoned(), !proposed);
        assert!(!phase.propose(), "it is over in any case");
        assert_eq!(phase.abandon(), wanted, "and it stays so");
    });
}

/// A command that came to the raftstore twice would be applied twice.
#[test]
fn propose_races_propose() {
    model(|| {
        let phase = Arc::new(Phase::default());
        let other = Arc::clone(&phase);
        let other = thread::spawn(move || other.propose());
        let here = phase.propose();
        assert_ne!(here, other.join().unwrap(), "one of them");
        assert_eq!(phase.abandon(), Abandoned::Proposed);
    });
}

/// Once somebody has seen that a command is abandoned, it stays so for him.
#[test]
fn a_look_at_the_phase_races_abandon() {
    model(|| {
        let phase = Arc::new(Phase::default());
        let other = Arc::clone(&phase);
        let other = thread::spawn(move || other.abandon());
        let seen = phase.is_abandoned();
        let claimed = phase.propose();
        assert!(!(seen && claimed), "it was proposed after it was seen to be abandoned");
        assert_eq!(other.join().unwrap() == Abandoned::Proposed, claimed);
    });
}

/// The answers: the caller is told once, by the deadline or by close, and what it is told is true.
#[test]
fn propose_races_the_deadline_and_close() {
    model_of_tasks(|| {
        let caller = Caller::new();
        let task = caller.task(1, &[7]);
        let (deadline, close) = (task.clone(), task.clone());
        let deadline = thread::spawn(move || _ = tell_overdue(&deadline));
        let close = thread::spawn(move || _ = tell_closed(&close));
        let proposed = caller.propose(&task);
        deadline.join().unwrap();
        close.join().unwrap();
        match caller.told_once() {
            Outcome::NotExecuted(Error::DeadlineExceeded | Error::Closed) => assert!(!proposed),
            Outcome::Indeterminate(Cause::DeadlineExceeded | Cause::Closed) => assert!(proposed),
            reply => panic!("nobody says {reply:?}"),
        }
    });
}

/// The raftstore and apply against an early answer: the earlier one is heard, and never *not executed* of what is applied.
#[test]
fn propose_and_apply_race_the_deadline() {
    model_of_tasks(|| {
        let caller = Caller::new();
        let task = caller.task(1, &[7]);
        let deadline = task.clone();
        let deadline = thread::spawn(move || tell_overdue(&deadline));
        let applied = caller.propose(&task).then(|| caller.apply(&task));
        let early = deadline.join().unwrap();
        let reply = caller.told_once();
        match applied {
            None => assert!(reply.is_not_executed()),
            Some(applied) => assert_ne!(applied, early, "one of them ran the callback"),
        }
    });
}
