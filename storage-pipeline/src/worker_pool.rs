//! The worker pool: runs a command's check on its snapshot and sends what it wants to change to the raftstore. In two
//! modes it also ends commands. A worker ends when the mailbox is closed and empty.

use std::time::Instant;

use crate::{
    command::Processed,
    engine::{Snapshot, modify},
    error::{Error, Outcome},
    mailbox::Refused,
    observe::Moment,
    raftstore::{msg::Proposal, router::Router},
    scheduler::{
        Scheduler,
        task::{Job, Settled, Task},
    },
};

/// What the pool is sent.
pub(crate) enum WorkerTask {
    /// Run a command's check.
    Process {
        job: Job,
        snapshot: Box<dyn Snapshot>,
        /// The term whose leader took the snapshot; only a leader of that term may propose what comes of it.
        term: u64,
    },
    /// Tell callers and release latches, in the modes where the pool does that.
    Finish(Vec<Settled>),
}

impl WorkerTask {
    /// The job of a message that a closed pool gave back.
    pub(crate) fn into_job(self) -> Job {
        match self {
            Self::Process { job, .. } => job,
            Self::Finish(_) => unreachable!("only a Process message carries a job, and only its sender asks"),
        }
    }
}

impl std::fmt::Debug for WorkerTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Process { job, term, .. } => f.debug_tuple("Process").field(job).field(term).finish(),
            Self::Finish(batch) => f.debug_tuple("Finish").field(batch).finish(),
        }
    }
}

/// Runs one worker.
pub(crate) fn run(scheduler: &Scheduler, router: &Router) {
    while let Some(task) = scheduler.workers.receive() {
        match task {
            WorkerTask::Process { job, snapshot, term } => process(job, &*snapshot, term, scheduler, router),
            WorkerTask::Finish(batch) => scheduler.finish(batch),
        }
    }
}

fn process(job: Job, snapshot: &dyn Snapshot, term: u64, scheduler: &Scheduler, router: &Router) {
    let Job { task, command } = job;
    let settle = |task, reply| scheduler.settle_on_worker(Settled::without_entry(task, reply));
    if let Some(error) = too_late(&task, scheduler) {
        return settle(task, Outcome::NotExecuted(error));
    }
    scheduler.observer.note(Moment::Processing { cid: task.context().cid });
    let Processed { modifies, response } = match command.process(snapshot) {
        Ok(processed) => processed,
        Err(error) => return settle(task, Outcome::NotExecuted(error)),
    };
    if modifies.is_empty() {
        return settle(task, Outcome::Applied(response));
    }
    let proposal = Proposal { task, term, data: modify::encode(&modifies), response };
    match router.propose(proposal) {
        Ok(()) => {}
        Err(Refused::Full(proposal)) => settle(proposal.task, Outcome::NotExecuted(Error::SchedTooBusy)),
        Err(Refused::Closed(proposal)) => settle(proposal.task, Outcome::NotExecuted(scheduler.refusal())),
    }
}

/// Why running the command is pointless, if it is. Its caller may have the answer already.
fn too_late(task: &Task, scheduler: &Scheduler) -> Option<Error> {
    if task.context().phase.is_abandoned() && scheduler.is_closing() {
        return Some(scheduler.refusal());
    }
    let is_late = task.context().phase.is_abandoned() || task.context().deadline <= Instant::now();
    is_late.then_some(Error::DeadlineExceeded)
}
