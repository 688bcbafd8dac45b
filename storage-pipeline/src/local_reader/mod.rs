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
        // A term has a lease only once an entry of its own is applied, and all that earlier terms have acknowledged with it. A
        // snapshot that was begun before may lack that, however valid the lease is that it finds afterwards.
        if self.policy == ReadPolicy::Lease
            && let Some(led) = lease.term()
        {
            let snapshot = engine.snapshot();
            // The clock is read after the snapshot was taken: a lease that is valid now was valid then.
            if let Some(term) = lease.term_at(clock::now()).filter(|term| *term == led) {
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

#[cfg(test)]
mod tests {
    use std::{
        sync::Mutex,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::{
        command::RawGet,
        engine::{EngineError, Snapshot, WriteBatch, memory::MemoryEngine},
        local_reader::lease::Lease,
        scheduler::{task::Task, testing},
    };

    /// An engine in which something else happens just after a snapshot is taken.
    struct Meanwhile {
        engine: MemoryEngine,
        happens: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    }

    impl Engine for Meanwhile {
        fn write(&self, batch: &WriteBatch) -> Result<(), EngineError> {
            self.engine.write(batch)
        }

        fn sync(&self) -> Result<(), EngineError> {
            self.engine.sync()
        }

        fn snapshot(&self) -> Box<dyn Snapshot> {
            let snapshot = self.engine.snapshot();
            let happens = self.happens.lock().unwrap().take();
            happens.expect("one snapshot is taken")();
            snapshot
        }
    }

    fn job() -> Job {
        Job { task: Task::new(testing::context(&[]), |_| ()), command: RawGet { key: b"k".to_vec() }.into() }
    }

    /// Whether a job gets its snapshot at once where the lease becomes another one just after that was taken.
    fn is_served(before: Option<Lease>, after: Option<Lease>) -> bool {
        let lease = SharedLease::default();
        lease.publish(before);
        let published = lease.clone();
        let happens: Box<dyn FnOnce() + Send> = Box::new(move || published.publish(after));
        let engine =
            Arc::new(Meanwhile { engine: MemoryEngine::default(), happens: Mutex::new(Some(happens)) });
        let (raftstore, observer) = (Mailbox::default(), Observer::default());
        let router = Router::new(raftstore.clone(), 8, observer.clone());
        let workers = Mailbox::default();
        let reader = LocalReader {
            regions: [RegionReader { engine, lease, router }].into(),
            policy: ReadPolicy::Lease,
            workers: workers.clone(),
            observer,
        };
        reader.snapshot(job()).unwrap();
        assert_eq!(workers.len() + raftstore.len(), 1, "a job goes one way");
        workers.len() == 1
    }

    #[test]
    fn a_snapshot_is_of_a_term_that_had_its_lease_before_it_and_has_it_still() {
        let later = Instant::now() + Duration::from_secs(60);
        let lease = |term| Some(Lease { term, until: later });
        let expired = Some(Lease { term: 5, until: Instant::now() });
        assert!(is_served(lease(5), lease(5)));
        assert!(is_served(expired, lease(5)), "its leader has not changed");
        assert!(!is_served(lease(5), expired));
        assert!(!is_served(lease(5), None), "it has lost the leadership");
        assert!(!is_served(lease(4), lease(5)), "it may lack what the leader between had acknowledged");
        assert!(!is_served(None, lease(5)), "it may lack what the leader before had acknowledged");
    }
}
