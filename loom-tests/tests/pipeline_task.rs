//! The task: of all who answer and all who drop a handle, exactly one reaches the caller, and says what is true.

#[cfg(not(storage_pipeline_loom))]
compile_error!("the models of the pipeline need --cfg storage_pipeline_loom in RUSTFLAGS");

use std::sync::Arc;

use loom::thread;
use loom_tests::pipeline::{Caller, model_of_tasks, tell_closed, tell_overdue};
use storage_pipeline::scheduler::task::{Abandoned, Task, Told};
use storage_pipeline::{Cause, Error, Outcome};

/// Whoever holds a handle, and what it does before the handle goes.
#[derive(Clone, Copy)]
enum Holder {
    /// The raftstore and apply, where nothing goes wrong.
    ProposesAndApplies,
    /// The raftstore, whose proposal is lost on the way.
    ProposesAndLeaves,
    /// The sweep of deadlines.
    TellsOverdue,
    /// Close, cut off between the claim and the answer.
    AbandonsAndLeaves,
    /// The books, or a stage that fails.
    Leaves,
}

fn act(holder: Holder, caller: &Caller, task: Task) {
    match holder {
        Holder::ProposesAndApplies => {
            if caller.propose(&task) {
                let _ = caller.apply(&task);
            }
        }
        Holder::ProposesAndLeaves => _ = caller.propose(&task),
        Holder::TellsOverdue => _ = tell_overdue(&task),
        Holder::AbandonsAndLeaves => _ = task.context().phase.abandon(),
        Holder::Leaves => {}
    }
}

/// Each holder on a thread of its own. The caller is told once, the truth, and something that one of them can have said.
fn race(holders: &'static [Holder]) {
    model_of_tasks(move || {
        let caller = Caller::new();
        let task = caller.task(1, &[7]);
        let others: Vec<_> = holders[1..]
            .iter()
            .map(|&holder| {
                let (caller, task) = (caller.clone(), task.clone());
                thread::spawn(move || act(holder, &caller, task))
            })
            .collect();
        act(holders[0], &caller, task);
        for other in others {
            other.join().unwrap();
        }
        let anybody = |wanted: fn(&Holder) -> bool| holders.iter().any(wanted);
        let is_possible = match caller.told_once() {
            Outcome::Applied(_) => anybody(|holder| matches!(holder, Holder::ProposesAndApplies)),
            Outcome::NotExecuted(Error::DeadlineExceeded)
            | Outcome::Indeterminate(Cause::DeadlineExceeded) => {
                anybody(|holder| matches!(holder, Holder::TellsOverdue))
            }
            // The fallback speaks where nobody is sure to.
            Outcome::NotExecuted(Error::Dropped) | Outcome::Indeterminate(Cause::Dropped) => {
                !anybody(|holder| matches!(holder, Holder::TellsOverdue))
            }
            _ => false,
        };
        assert!(is_possible, "{:?}", caller.told_once());
    });
}

#[test]
fn deadline_races_apply_races_the_books() {
    race(&[Holder::ProposesAndApplies, Holder::TellsOverdue, Holder::Leaves]);
}

/// All who can answer, on one handle: how handles go is the matter of the others.
#[test]
fn deadline_races_close_races_apply() {
    model_of_tasks(|| {
        let caller = Caller::new();
        let task = Arc::new(caller.task(1, &[7]));
        let others = [tell_overdue, tell_closed].map(|tell| {
            let task = Arc::clone(&task);
            thread::spawn(move || tell(&task))
        });
        let applied = caller.propose(&task).then(|| caller.apply(&task));
        let mut all = others.map(|other| other.join().unwrap()).to_vec();
        all.extend(applied);
        assert_eq!(all.iter().filter(|told| **told == Told::Now).count(), 1, "one of them ran the callback");
        let reply = caller.told_once();
        assert!(applied != Some(Told::Now) || reply.is_applied(), "what apply said is what was heard");
    });
}

#[test]
fn deadline_races_a_proposal_that_is_lost_races_the_books() {
    race(&[Holder::ProposesAndLeaves, Holder::TellsOverdue, Holder::Leaves]);
}

#[test]
fn an_unfinished_close_races_apply_races_the_books() {
    race(&[Holder::ProposesAndApplies, Holder::AbandonsAndLeaves, Holder::Leaves]);
}

#[test]
fn the_last_two_handles_of_a_command_go() {
    race(&[Holder::Leaves, Holder::Leaves]);
}

#[test]
fn the_last_three_handles_of_a_command_go() {
    race(&[Holder::Leaves, Holder::Leaves, Holder::Leaves]);
}

/// Whoever drops the last handle says *indeterminate*, though somebody else proposed it, on another thread.
#[test]
fn the_last_handles_of_a_proposal_go() {
    race(&[Holder::ProposesAndLeaves, Holder::Leaves, Holder::Leaves]);
}

#[test]
fn the_last_handles_go_in_the_middle_of_a_claim() {
    race(&[Holder::ProposesAndLeaves, Holder::AbandonsAndLeaves, Holder::Leaves]);
}

/// Apply's answer comes last or not at all: a handle that still exists keeps the fallback from running.
#[test]
fn apply_answers_while_all_others_leave() {
    race(&[Holder::ProposesAndApplies, Holder::Leaves, Holder::Leaves]);
}

/// A sweep that only looks neither answers nor keeps anybody from it, and sees an answer it came after.
#[test]
fn a_look_races_apply() {
    model_of_tasks(|| {
        let caller = Caller::new();
        let task = caller.task(1, &[7]);
        let sweep = task.clone();
        let sweep = thread::spawn(move || {
            let first = sweep.is_unanswered();
            (first, sweep.is_unanswered())
        });
        assert!(caller.propose(&task));
        let _ = caller.apply(&task);
        assert!(!task.is_unanswered());
        assert_ne!(sweep.join().unwrap(), (false, true), "what was answered stays so");
        assert!(caller.told_once().is_applied());
        assert_eq!(task.context().phase.abandon(), Abandoned::Proposed);
    });
}
