//! Shutdown against completion: every caller is told once and the truth, nobody is woken by a fate that is not known,
//! and the books and the latches are empty at the end.
//!
//! The steps are the pipeline's own; their order is that of `scheduler/settle.rs` and of `Storage::close`.

#[cfg(not(storage_pipeline_loom))]
compile_error!("the models of the pipeline need --cfg storage_pipeline_loom in RUSTFLAGS");

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use loom_tests::pipeline::{
    BYTES, Caller, Keys, bounded_model_of_tasks, model_of_tasks, tell_closed, tell_refused,
};
use storage_pipeline::scheduler::in_flight::InFlight;
use storage_pipeline::scheduler::latches::{Latches, Waiter};
use storage_pipeline::scheduler::task::{Abandoned, Task};
use storage_pipeline::{Cause, Error, Outcome};

/// The key that all commands latch.
const KEY: u64 = 1;

/// A command with its caller, as it waits for latches.
struct Job(Task, Caller);

impl Waiter for Job {
    fn id(&self) -> u64 {
        self.0.context().cid
    }
    fn hashes(&self) -> &[u64] {
        &self.0.context().hashes
    }
}

/// What the threads of the pipeline share. `Arc` is std's, so that it orders nothing.
#[derive(Clone)]
struct Store(Arc<(Latches<Job>, InFlight, AtomicBool)>, Keys);

impl Store {
    fn new() -> Self {
        let parts = (Latches::new(4), InFlight::new(4, 100), AtomicBool::new(false));
        Self(Arc::new(parts), Keys::new(KEY as usize + 1))
    }

    fn latches(&self) -> &Latches<Job> {
        &self.0.0
    }

    fn books(&self) -> &InFlight {
        &self.0.1
    }

    /// Admission, then the latches, on a caller's thread. Gives back a job that holds its latches.
    fn submit(&self, cid: u64, caller: &Caller) -> Option<Job> {
        let task = caller.task(cid, &[KEY]);
        let room = self.books().reserve(BYTES).expect("there is room for all");
        if self.books().enter(room, &task).is_err() {
            let _ = tell_closed(&task);
            return None;
        }
        self.latches().acquire(Job(task, caller.clone()))
    }

    /// The raftstore, apply and the releaser, for a job that holds its latches and then for those it wakes; these are
    /// refused where the store is seen to close. Says how many it struck off the books.
    fn run(&self, job: Option<Job>) -> usize {
        let (mut ready, mut left) = (Vec::from_iter(job), 0);
        let mut is_refused = false;
        while let Some(Job(task, caller)) = ready.pop() {
            let context = task.context();
            if is_refused {
                let _ = tell_refused(&task);
            } else if caller.propose(&task) {
                self.1.write(&context.hashes, context.cid);
                let _ = caller.apply(&task);
            }
            self.latches().release(context.cid, &context.hashes, &mut ready);
            left += usize::from(self.books().leave(&task));
            is_refused = self.0.2.load(Ordering::Relaxed);
        }
        left
    }

    fn close(&self) {
        self.0.2.store(true, Ordering::Relaxed);
        for task in self.books().close() {
            if task.context().phase.abandon() == Abandoned::NeverProposed {
                let _ = tell_closed(&task);
            }
        }
    }

    /// Says how many it struck off the books.
    fn discard(&self) -> usize {
        let left = self.books().discard();
        left.iter().for_each(|task| _ = tell_closed(task));
        drop(self.latches().discard());
        left.len()
    }

    /// Nothing is left, and whoever was applied was so alone: whoever was not heard that the store closed.
    fn check(&self, callers: &[&Caller]) {
        assert_eq!((self.books().counts(), self.latches().counts()), ((0, 0), (0, 0)), "nothing is left");
        for caller in callers {
            match caller.told_once() {
                Outcome::Applied(_) | Outcome::NotExecuted(Error::Closed) => {}
                Outcome::Indeterminate(Cause::Closed) => {}
                reply => panic!("nobody says {reply:?}"),
            }
        }
        let proposed = callers.iter().filter(|caller| caller.was_proposed()).count();
        assert_eq!(self.1.writers(KEY).len(), proposed, "what was proposed is applied, once");
    }
}

/// The pipeline's own order: close, join, discard. A command in front of raft is applied or answered before, and so is
/// its successor, after it.
#[test]
fn completion_and_its_successor_race_close() {
    model_of_tasks(|| {
        let (store, first, second) = (Store::new(), Caller::new(), Caller::new());
        let job = store.submit(1, &first);
        assert!(job.is_some() && store.submit(2, &second).is_none(), "the second one waits");
        let other = store.clone();
        let pipeline = thread::spawn(move || other.run(job));
        store.close();
        let ended = pipeline.join().unwrap();
        assert_eq!(ended + store.discard(), 2, "each left the books once");
        store.check(&[&first, &second]);
        for caller in [&first, &second] {
            assert!(!caller.told_once().is_indeterminate(), "every thread got to its end");
        }
        assert!(store.1.writers(KEY).is_sorted(), "in the order of the queue");
    });
}

/// A caller that comes while the store closes.
#[test]
fn submit_races_close() {
    model_of_tasks(|| {
        let (store, caller) = (Store::new(), Caller::new());
        let (other, late) = (store.clone(), caller.clone());
        let submitter = thread::spawn(move || other.run(other.submit(1, &late)));
        store.close();
        let left = submitter.join().unwrap() + store.discard();
        assert!(left == 1 || left == 0 && !caller.was_proposed(), "it left the books once, or was refused");
        store.check(&[&caller]);
        assert!(!caller.told_once().is_indeterminate(), "every thread got to its end");
    });
}

/// As after a fault: nobody waits for the threads. Whoever was proposed may hear that its fate is not known; the books
/// and the latches are emptied by the two together, and by neither twice.
#[test]
fn completion_races_close_and_discard() {
    model_of_tasks(|| {
        let (store, caller) = (Store::new(), Caller::new());
        let job = store.submit(1, &caller);
        let other = store.clone();
        let pipeline = thread::spawn(move || other.run(job));
        store.close();
        let discarded = store.discard();
        let ended = pipeline.join().unwrap();
        assert_eq!(ended + discarded, 1, "it left the books once");
        store.check(&[&caller]);
    });
}

/// A caller that comes while the store closes and another command completes. Explored with a bound on preemptions.
#[test]
fn submit_races_completion_races_close() {
    bounded_model_of_tasks(3, || {
        let (store, first, second) = (Store::new(), Caller::new(), Caller::new());
        let job = store.submit(1, &first);
        let (pipeline, submitter, late) = (store.clone(), store.clone(), second.clone());
        let pipeline = thread::spawn(move || pipeline.run(job));
        let submitter = thread::spawn(move || submitter.run(submitter.submit(2, &late)));
        store.close();
        let ended = pipeline.join().unwrap() + submitter.join().unwrap();
        assert!(ended + store.discard() <= 2, "each left the books once, or was refused");
        store.check(&[&first, &second]);
    });
}

/// A proposal whose fate nobody learns before the end: its caller hears so, and its successor is never run.
#[test]
fn an_unfinished_proposal_races_close() {
    model_of_tasks(|| {
        let (store, first, second) = (Store::new(), Caller::new(), Caller::new());
        let Job(task, caller) = store.submit(1, &first).expect("the first");
        assert!(store.submit(2, &second).is_none(), "the second one waits");
        let raft = thread::spawn(move || caller.propose(&task).then_some(task));
        store.close();
        let pending = raft.join().unwrap();
        assert_eq!(store.discard(), 2, "both were in the books until the end");
        assert_eq!(first.told_once().is_indeterminate(), pending.is_some());
        assert_eq!(second.told_once(), Outcome::NotExecuted(Error::Closed));
        assert_eq!((store.books().counts(), store.latches().counts()), ((0, 0), (0, 0)), "nothing is left");
    });
}
