//! The local reader: takes a snapshot under the leader's lease, or sends the job through ReadIndex. Hands jobs with
//! their snapshots on to the worker pool.

use std::{fmt, sync::Arc};

pub(crate) mod lease;

use crate::{
    clock,
    config::ReadPolicy,
    engine::Engine,
    error::Error,
    local_reader::lease::SharedLease,
    mailbox::{Mailbox, Refused},
    observe::{FailPoint, Moment, Observer},
    raftstore::router::Router,
    region::FIRST_REGION,
    scheduler::task::Job,
    worker_pool::WorkerTask,
};

/// Serves snapshots from any thread. No caller waits here: a job that needs ReadIndex is a message to the raftstore.
#[derive(Clone)]
pub(crate) struct LocalReader {
    /// In the order of their ids.
    pub(crate) regions: Box<[RegionReader]>,
    pub(crate) policy: ReadPolicy,
    pub(crate) workers: Mailbox<WorkerTask>,
    pub(crate) observer: Observer,
}

/// How one region is read, and reached.
#[derive(Clone)]
pub(crate) struct RegionReader {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) lease: SharedLease,
    pub(crate) router: Router,
}

impl LocalReader {
    /// A region that the store has.
    pub(crate) fn of(&self, region: u64) -> &RegionReader {
        self.find(region).expect("whoever names a region has looked for it")
    }

    /// A region, if the store has it.
    pub(crate) fn find(&self, region: u64) -> Option<&RegionReader> {
        self.regions.get(usize::try_from(region.checked_sub(FIRST_REGION)?).ok()?)
    }

    /// Takes a snapshot for the job and sends both to the worker pool, now or once the raftstore has confirmed that
    /// this replica still leads.
    ///
    /// # Errors
    /// The job, and why it cannot have a snapshot.
    pub(crate) fn snapshot(&self, job: Job) -> Result<(), (Job, Error)> {
        if self.observer.fails(FailPoint::SnapshotRefused) {
            return Err((job, Error::SchedTooBusy));
        }
        let RegionReader { engine, lease, router } = self.of(job.task.context().region);
        if self.policy == ReadPolicy::Lease {
            let snapshot = engine.snapshot();
            // The clock is read after the snapshot was taken: a lease that is valid now was valid then.
            if let Some(term) = lease.term_at(clock::now()) {
                self.observer.note(Moment::SnapshotTaken { cid: job.task.context().cid, under_lease: true });
                let task = WorkerTask::Process { job, snapshot, term };
                return self.workers.send(task).map_err(|task| (task.into_job(), Error::Closed));
            }
        }
        router.read(job).map_err(|refused| match refused {
            Refused::Full(job) => (job, Error::SchedTooBusy),
            Refused::Closed(job) => (job, Error::Closed),
        })
    }

    /// The raftstore's part: leadership of `term` was confirmed after the job came, and everything committed then is
    /// applied now.
    pub(crate) fn confirmed(&self, job: Job, term: u64) -> Result<(), (Job, Error)> {
        let snapshot = self.of(job.task.context().region).engine.snapshot();
        self.observer.note(Moment::SnapshotTaken { cid: job.task.context().cid, under_lease: false });
        let task = WorkerTask::Process { job, snapshot, term };
        self.workers.send(task).map_err(|task| (task.into_job(), Error::Closed))
    }
}

impl fmt::Debug for LocalReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leases: Vec<_> = self.regions.iter().map(|region| &region.lease).collect();
        f.debug_struct("LocalReader").field("leases", &leases).field("policy", &self.policy).finish()
    }
}
