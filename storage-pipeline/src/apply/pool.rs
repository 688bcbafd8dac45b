//! A thread of the apply pool, which applies what some regions have committed, each region in order. For each batch: data
//! and applied index in one write, then the published index, then the callbacks, then the release messages. It ends when
//! its mailbox is closed and empty.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use crate::{
    apply::{
        delegate::{Delegate, Prepared},
        state::{ApplyState, load_membership},
        task::ApplyTask,
    },
    clock,
    engine::{Engine, EngineError},
    mailbox::{Mailbox, Received},
    observe::{FailPoint, Moment, Observer},
    patience::Patience,
    planted::planted,
    raftstore::{log_storage::Position, msg::ApplyRes, router::Router, staging::Staging},
    scheduler::Scheduler,
};

/// What a thread of the pool owns and holds.
pub(crate) struct Applier {
    pub(crate) tasks: Mailbox<ApplyTask>,
    /// Those whose entries this thread applies, and nobody else.
    pub(crate) regions: Vec<RegionApplier>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) most_batch_bytes: usize,
}

/// One region's side of apply.
pub(crate) struct RegionApplier {
    pub(crate) region: u64,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) staging: Arc<Staging>,
    pub(crate) delegate: Delegate,
    /// The applied index, for everybody to read.
    pub(crate) applied: Arc<AtomicU64>,
    pub(crate) router: Router,
}

impl Applier {
    /// Runs until the mailbox is closed and empty. The first failure poisons the store and ends the thread: what was
    /// to be applied is applied after the next start.
    pub(crate) fn run(mut self) {
        let mut tasks = VecDeque::new();
        let mut patience = Patience::new(self.scheduler.config.stay_awake, Instant::now());
        loop {
            patience.stay_awake(&self.tasks);
            if self.tasks.receive_all(&mut tasks, None) == Received::Closed {
                return;
            }
            let writes = tasks.iter().map(|task| task.proposals.len()).sum();
            patience.received(writes, self.scheduler.in_flight.counts().0, Instant::now());
            if !self.turn(&mut tasks) {
                return;
            }
            patience.done(Instant::now());
        }
    }

    /// Applies tasks, in as many batches as they need. Says whether the thread goes on.
    pub(crate) fn turn(&mut self, tasks: &mut VecDeque<ApplyTask>) -> bool {
        while !tasks.is_empty() {
            if let Err(error) = self.apply_some(tasks) {
                self.scheduler.poison(&format!("applying committed entries: {error}"));
                return false;
            }
        }
        true
    }

    /// Applies as many tasks of one region as one batch may hold.
    fn apply_some(&mut self, tasks: &mut VecDeque<ApplyTask>) -> Result<(), EngineError> {
        let Self { regions, scheduler, most_batch_bytes, .. } = self;
        let Some(region) = tasks.front().map(|task| task.region) else { return Ok(()) };
        let Some(own) = regions.iter_mut().find(|own| own.region == region) else {
            return Err(EngineError::new(format!("entries of region {region}, which is another thread's")));
        };
        own.apply_some(tasks, scheduler, *most_batch_bytes)
    }
}

impl RegionApplier {
    fn apply_some(
        &mut self,
        tasks: &mut VecDeque<ApplyTask>,
        scheduler: &Scheduler,
        most_batch_bytes: usize,
    ) -> Result<(), EngineError> {
        let observer = &scheduler.observer;
        if tasks.front().is_some_and(|task| task.snapshot.is_some()) {
            tasks.pop_front();
            return self.install(observer);
        }
        let mut prepared = self.delegate.begin();
        let region = self.region;
        while tasks.front().is_some_and(|task| task.region == region && task.snapshot.is_none())
            && let Some(task) = tasks.pop_front()
        {
            self.delegate.prepare(task, &mut prepared)?;
            if prepared.bytes >= most_batch_bytes {
                break;
            }
        }
        self.delegate.seal(&mut prepared);
        let Prepared { batch, mut settled, bytes, changes } = prepared;
        let state = self.delegate.state();
        observer.note(Moment::Applying { region, index: state.index });
        if observer.fails(FailPoint::DataWrite) {
            return Err(EngineError::new("injected failure of a data write"));
        }
        if planted!(TellBeforeWrite) {
            scheduler.settle_all(std::mem::take(&mut settled));
        }
        self.engine.write(&batch)?;
        self.delegate.written(batch);
        // ORDERING: Release, for the Acquire of whoever reads the index and then the data it stands for.
        self.applied.store(state.index, Ordering::Release);
        observer.note(Moment::Applied { region, index: state.index });
        // The report goes before the callbacks, so that a slow one delays no read that waits for this index.
        let (ApplyState { index, term }, conf_ver) = (state, self.delegate.conf_ver());
        self.router.applied(ApplyRes { index, term, bytes, changes, conf_ver });
        let applied_at = Some(clock::now());
        settled.iter_mut().for_each(|settled| settled.applied_at = applied_at);
        scheduler.settle_all(settled);
        Ok(())
    }

    /// Replaces the region's data by a snapshot, which is complete beside it.
    fn install(&mut self, observer: &Observer) -> Result<(), EngineError> {
        let Some(manifest) = self.staging.manifest()? else {
            return Err(EngineError::new("the snapshot that is to be installed is gone"));
        };
        let Position { index, term } = manifest.position;
        observer.note(Moment::SnapshotInstalling { region: self.region, index });
        tracing::info!(region = self.region, index, term, "a snapshot replaces the data");
        self.staging.install(&manifest)?;
        self.staging.finish(&manifest)?;
        // The count of changes came with the data.
        let membership = load_membership(&*self.engine.snapshot())?.unwrap_or_default();
        let conf_ver = membership.conf_ver;
        self.delegate.restart(ApplyState { index, term }, membership);
        // ORDERING: Release, as in `apply_some`.
        self.applied.store(index, Ordering::Release);
        observer.note(Moment::Applied { region: self.region, index });
        self.router.applied(ApplyRes { index, term, bytes: 0, changes: Vec::new(), conf_ver });
        Ok(())
    }
}
