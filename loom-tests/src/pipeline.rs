//! What the models of the pipeline share: a caller that remembers what it was told, a raft that remembers what it was
//! given, and data that only the holder of a latch may touch.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use callback_slot::fallback_panics;
use loom::cell::UnsafeCell;
use storage_pipeline::command::Response;
use storage_pipeline::scheduler::latches::Waiter;
use storage_pipeline::scheduler::task::{Phase, Reply, Task, TaskContext, Told};
use storage_pipeline::{Cause, Error, Outcome};

use crate::{Count, Probe, bounded_model, model};

/// What a command of the models counts in bytes.
pub const BYTES: usize = 10;

/// Runs a model of tasks. A callback's panic is caught where it runs, in a fallback by the slot itself: this is where it
/// comes to light.
///
/// # Panics
/// If an interleaving fails, or if a caller's callback panicked in one.
pub fn model_of_tasks(body: impl Fn() + Send + Sync + 'static) {
    model(move || {
        body();
        assert_eq!(fallback_panics(), 0, "a callback panicked in a drop");
    });
}

/// The same with a bound on preemptions, where without one the model would take minutes.
///
/// # Panics
/// As [`model_of_tasks`].
pub fn bounded_model_of_tasks(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    bounded_model(preemptions, move || {
        body();
        assert_eq!(fallback_panics(), 0, "a callback panicked in a drop");
    });
}

/// One command's caller, and what happened to its command. Loom sees none of it but the probes.
#[derive(Clone)]
pub struct Caller {
    told: Arc<Mutex<Vec<Reply>>>,
    /// Written before the command was sent; the callback reads it.
    sent: Probe,
    /// Written by whoever applies the command; a callback that hears of it reads it.
    applied: Probe,
    proposed: Count,
}

impl Caller {
    /// A caller that was told nothing yet.
    #[expect(clippy::new_without_default, reason = "a caller belongs to a model")]
    pub fn new() -> Self {
        let (sent, applied) = (Probe::new(), Probe::new());
        sent.write();
        Self { told: Arc::default(), sent, applied, proposed: Count::default() }
    }

    /// Its command, whose deadline is now. The callback touches nothing that loom would switch threads at.
    pub fn task(&self, cid: u64, hashes: &[u64]) -> Task {
        let phase = Phase::default();
        let context = TaskContext {
            cid,
            region: 1,
            epoch: None,
            hashes: hashes.into(),
            deadline: Instant::now(),
            bytes: BYTES,
            phase,
        };
        let caller = self.clone();
        Task::new(context, move |reply| {
            caller.sent.read();
            if reply.is_applied() {
                caller.applied.read();
            }
            caller.told.lock().unwrap().push(reply);
        })
    }

    /// What the raftstore does: claims the command, and has it from then on.
    pub fn propose(&self, task: &Task) -> bool {
        let claimed = task.context().phase.propose();
        if claimed {
            self.proposed.add();
        }
        claimed
    }

    /// What apply does with a command that was proposed.
    pub fn apply(&self, task: &Task) -> Told {
        self.applied.write();
        sound(task.tell(Outcome::Applied(Response::Done)))
    }

    /// Whether raft had the command.
    pub fn was_proposed(&self) -> bool {
        self.proposed.get() > 0
    }

    /// What the caller was told, where it was told exactly once and nothing that is a lie.
    ///
    /// # Panics
    /// Where it was not.
    pub fn told_once(&self) -> Reply {
        let told = self.told.lock().unwrap().clone();
        assert_eq!(told.len(), 1, "told exactly once: {told:?}");
        assert!(self.proposed.get() <= 1, "proposed at most once");
        if told[0].is_not_executed() {
            assert!(!self.was_proposed(), "{told:?}, but raft has it");
        } else {
            assert!(self.was_proposed(), "{told:?}, but raft never had it");
        }
        told[0].clone()
    }
}

/// What the sweep of deadlines does.
pub fn tell_overdue(task: &Task) -> Told {
    sound(task.tell_early(Error::DeadlineExceeded, Cause::DeadlineExceeded))
}

/// What close does, for those whom raft does not have, and what discard does for the rest.
pub fn tell_closed(task: &Task) -> Told {
    sound(task.tell_early(Error::Closed, Cause::Closed))
}

/// What the scheduler does with a command that it hands to nobody.
pub fn tell_refused(task: &Task) -> Told {
    sound(task.tell(Outcome::NotExecuted(Error::Closed)))
}

/// A callback that failed in a model says so only here.
fn sound(told: Told) -> Told {
    assert_ne!(told, Told::Panicked, "a callback found something wrong");
    told
}

/// A command that latches keys, for models of latches alone.
#[derive(Debug)]
pub struct Latching {
    /// Its number.
    pub id: u64,
    /// The hashes of its keys, ascending.
    pub hashes: &'static [u64],
}

impl Waiter for Latching {
    fn id(&self) -> u64 {
        self.id
    }
    fn hashes(&self) -> &[u64] {
        self.hashes
    }
}

/// The data under some keys. Whoever holds a key's latch writes there, and loom fails the model unless all who do are
/// ordered, one wholly after the other.
#[derive(Clone)]
pub struct Keys(Arc<[UnsafeCell<Vec<u64>>]>);

// SAFETY: loom runs one thread at a time and reports accesses that are not ordered.
unsafe impl Send for Keys {}
// SAFETY: as above.
unsafe impl Sync for Keys {}

impl Keys {
    /// Keys whose hashes are below `count`.
    pub fn new(count: usize) -> Self {
        Self((0..count).map(|_| UnsafeCell::new(Vec::new())).collect())
    }

    /// Writes a holder's number under each of its keys.
    pub fn write(&self, hashes: &[u64], id: u64) {
        for &hash in hashes {
            // SAFETY: see the type.
            self.0[hash as usize].with_mut(|ids| unsafe { (*ids).push(id) });
        }
    }

    /// Who wrote there, in this order.
    pub fn writers(&self, hash: u64) -> Vec<u64> {
        // SAFETY: see the type.
        self.0[hash as usize].with(|ids| unsafe { (*ids).clone() })
    }
}
