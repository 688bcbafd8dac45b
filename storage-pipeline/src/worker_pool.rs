//! The worker pool: runs a command's check on its snapshot and sends what it wants to change to the raftstore. In two
//! modes it also ends commands. A worker ends when the mailbox is closed and empty.

use crate::{
    engine::Snapshot,
    error::Error,
    observe::Moment,
    region::{CurrentRegion, RegionEpoch},
    scheduler::{
        Scheduler,
        task::{Job, Settled, Task, TaskContext},
    },
    txn::meta::Number,
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
pub(crate) fn run(scheduler: &Scheduler) {
    while let Some(task) = scheduler.workers.receive() {
        turn(scheduler, task);
    }
}

/// Does what a worker is sent.
pub(crate) fn turn(scheduler: &Scheduler, task: WorkerTask) {
    match task {
        WorkerTask::Process { job, snapshot, term } => {
            if let Err(settled) = process(job, &*snapshot, term, scheduler) {
                scheduler.settle_on_worker(settled);
            }
        }
        WorkerTask::Finish(batch) => scheduler.finish(batch),
    }
}

fn process(job: Job, snapshot: &dyn Snapshot, term: u64, scheduler: &Scheduler) -> Result<(), Settled> {
    let Job { task, command } = job;
    if let Err(error) = scheduler.still_wanted(&task) {
        return Err(Settled::not_executed(task, error));
    }
    if let Err(error) = check_epoch(&task, snapshot, scheduler) {
        return Err(Settled::not_executed(task, error));
    }
    scheduler.observer.note(Moment::Processing { cid: task.context().cid });
    match command.process(snapshot) {
        Ok(processed) => scheduler.propose(task, Some(term), processed),
        Err(error) => Err(Settled::not_executed(task, error)),
    }
}

/// Refuses a command that names another epoch than the snapshot is of. Only a leader has snapshots.
fn check_epoch(task: &Task, snapshot: &dyn Snapshot, scheduler: &Scheduler) -> Result<(), Error> {
    let TaskContext { region, epoch: named, .. } = task.context();
    let (Some(_), Some(region)) = (named, scheduler.regions.get(*region)) else { return Ok(()) };
    let first = RegionEpoch::default();
    let conf_ver = Number::ConfVer.load(snapshot)?.unwrap_or(first.conf_ver);
    CurrentRegion { region: region.clone(), epoch: RegionEpoch { conf_ver, ..first } }.check(*named)
}
