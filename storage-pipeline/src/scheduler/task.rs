//! A command on its way: its context, its callback and the one word that says whether raft has it. Hands on answers.
//!
//! Phases, and who may change them:
//!
//! | phase | means | changed by |
//! |---|---|---|
//! | queued | raft has not seen it; *not executed* can be promised | - |
//! | proposed | raft has it; only an applied entry knows its fate | the raftstore, from *queued* |
//! | abandoned | the caller was promised *not executed*; it will never be proposed | deadline, close, fault: from *queued* |

use std::{fmt, time::Instant};

use callback_slot::{CallOutcome, SharedSlot};

use crate::{
    command::{Command, Response},
    error::{Cause, Error, Outcome},
    primitive::{Arc, AtomicU8, Ordering},
    region::RegionEpoch,
    scheduler::latches::Waiter,
};

/// What a caller is told.
pub type Reply = Outcome<Response>;

const QUEUED: u8 = 0;
const PROPOSED: u8 = 1;
const ABANDONED: u8 = 2;

/// Whether raft has the command: the compare-exchange that makes *not executed* a promise.
#[derive(Debug)]
pub struct Phase(AtomicU8);

/// Whether a promise of *not executed* was won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Abandoned {
    /// It will never be proposed.
    NeverProposed,
    /// It was proposed before; its fate is raft's.
    Proposed,
}

impl Default for Phase {
    fn default() -> Self {
        Self(AtomicU8::new(QUEUED))
    }
}

impl Phase {
    /// Claims the command for raft. `false` means that its caller was promised *not executed*.
    #[must_use = "a command that was abandoned must not be proposed"]
    pub fn propose(&self) -> bool {
        self.leave_queued_for(PROPOSED).is_ok()
    }

    /// Claims the command for an early answer.
    pub fn abandon(&self) -> Abandoned {
        match self.leave_queued_for(ABANDONED) {
            Ok(_) | Err(ABANDONED) => Abandoned::NeverProposed,
            Err(_) => Abandoned::Proposed,
        }
    }

    /// Whether an early answer was promised.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        // ORDERING: Relaxed; a hint that saves work. Whoever acts on the phase goes through the compare-exchange.
        self.0.load(Ordering::Relaxed) == ABANDONED
    }

    fn leave_queued_for(&self, phase: u8) -> Result<u8, u8> {
        // ORDERING: Relaxed; the two claims exclude each other by the order of this one word. The data that travels
        // with a command is ordered by its mailbox, and the answer by the slot.
        self.0.compare_exchange(QUEUED, phase, Ordering::Relaxed, Ordering::Relaxed)
    }
}

/// What is known of a command besides its keys and values.
#[derive(Debug)]
pub struct TaskContext {
    /// Number of the command, unique within an open store.
    pub cid: u64,
    /// Id of the region that the command is for.
    pub region: u64,
    /// The epoch of it that its caller has named.
    pub epoch: Option<RegionEpoch>,
    /// Hashes of the keys it latches; empty for a read.
    pub hashes: Box<[u64]>,
    /// When its caller wants an answer at the latest.
    pub deadline: Instant,
    /// What it counts against the bound of bytes in flight.
    pub bytes: usize,
    /// Whether raft has it.
    pub phase: Phase,
}

/// A handle to a command in flight. Clones share the context and the slot: the scheduler's books hold one, the stage
/// that has the command another.
#[derive(Clone)]
pub struct Task {
    context: Arc<TaskContext>,
    slot: SharedSlot<Reply>,
}

impl Task {
    /// A task whose callback runs exactly once. Where every handle is dropped without an answer, the callback still
    /// runs and says what is true at that moment.
    pub fn new(context: TaskContext, callback: impl FnOnce(Reply) + Send + 'static) -> Self {
        let context = Arc::new(context);
        let at_drop = Arc::clone(&context);
        let fallback = move || match at_drop.phase.abandon() {
            Abandoned::NeverProposed => Outcome::NotExecuted(Error::Dropped),
            Abandoned::Proposed => Outcome::Indeterminate(Cause::Dropped),
        };
        Self { context, slot: SharedSlot::must_call(callback, fallback) }
    }

    /// What is known of the command.
    #[must_use]
    pub fn context(&self) -> &TaskContext {
        &self.context
    }

    /// Whether the command latches nothing and proposes nothing.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.context.hashes.is_empty()
    }

    /// Whether nobody has answered yet. A plain load.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.slot.is_armed()
    }

    /// Tells the caller, unless somebody did before. The caller's code runs here, and a panic in it ends here.
    pub fn tell(&self, reply: Reply) -> Told {
        match self.slot.complete_catching(reply) {
            Ok(CallOutcome::Returned) => Told::Now,
            Ok(CallOutcome::Panicked(payload)) => {
                dispose(payload);
                Told::Panicked
            }
            Err(_) => Told::Before,
        }
    }

    /// Answers before the command is settled: *not executed* where that can still be promised, else *indeterminate*.
    /// Settles nothing: latches stay as they are.
    pub fn tell_early(&self, not_executed: Error, indeterminate: Cause) -> Told {
        match self.context.phase.abandon() {
            Abandoned::NeverProposed => self.tell(Outcome::NotExecuted(not_executed)),
            Abandoned::Proposed => self.tell(Outcome::Indeterminate(indeterminate)),
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.context).finish()
    }
}

/// Drops what a panic carried. That is user data, whose destructor may panic in turn; what that panic carries is leaked.
pub(crate) fn dispose(payload: Box<dyn std::any::Any + Send>) {
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(payload)));
    dropped.unwrap_or_else(std::mem::forget);
}

/// How telling a caller went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The callback ran and returned.
    Now,
    /// The callback ran and panicked. It counts as told.
    Panicked,
    /// Somebody told the caller before; nothing ran.
    Before,
}

/// A command that still has to be run, with its task. It moves from stage to stage and is in one place at a time.
#[derive(Debug)]
pub struct Job {
    /// The task.
    pub task: Task,
    /// What to run.
    pub command: Command,
}

impl Job {
    /// Whether it needs no snapshot. A command that reads nothing needs one where it names an epoch: only under a lease is it
    /// known that no later leader has changed the members.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.command.is_blind() && self.task.context.epoch.is_none()
    }
}

impl Waiter for Job {
    fn id(&self) -> u64 {
        self.task.context.cid
    }
    fn hashes(&self) -> &[u64] {
        &self.task.context.hashes
    }
}

/// A command that is settled: its fate is fixed, so its latches may go.
#[derive(Debug)]
pub struct Settled {
    /// The task.
    pub task: Task,
    /// What its caller is to be told; nothing once told.
    pub reply: Option<Reply>,
    /// When the batch with its entry was applied, where one was.
    pub applied_at: Option<Instant>,
}

impl Settled {
    /// Settled as never executed.
    #[must_use]
    pub fn not_executed(task: Task, why: Error) -> Self {
        Self::without_entry(task, Outcome::NotExecuted(why))
    }

    /// Settled without an applied entry.
    #[must_use]
    pub fn without_entry(task: Task, reply: Reply) -> Self {
        Self { task, reply: Some(reply), applied_at: None }
    }
}
