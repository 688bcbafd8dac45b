//! A thread of the apply pool, which applies what some regions have committed, each region in order. For each batch, of
//! however many of them: data and applied indexes in one write, then the published indexes, then the callbacks, then the
//! release messages. It ends when its mailbox is closed and empty.

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
    engine::{Engine, EngineError, WriteBatch},
    mailbox::{Mailbox, Received},
    observe::{FailPoint, Moment, Observer},
    patience::Patience,
    planted::planted,
    raftstore::{log_storage::Position, msg::ApplyRes, router::Router, staging::Staging},
    scheduler::{Scheduler, task::Settled},
};

/// What a thread of the pool owns and holds.
pub(crate) struct Applier {
    pub(crate) tasks: Mailbox<ApplyTask>,
    /// Those whose entries this thread applies, and nobody else.
    pub(crate) regions: Vec<RegionApplier>,
    pub(crate) scheduler: Arc<Scheduler>,
    /// What the engines of all regions are views of.
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) most_batch_bytes: usize,
    /// The last batch of several regions, and what the last one had of each, emptied: the next one uses their memory.
    pub(crate) together: WriteBatch,
    pub(crate) parts: Vec<Part>,
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

    /// Applies as many tasks as one batch may hold, of whichever regions come.
    fn apply_some(&mut self, tasks: &mut VecDeque<ApplyTask>) -> Result<(), EngineError> {
        let scheduler = Arc::clone(&self.scheduler);
        let observer = &scheduler.observer;
        let is_snapshot =
            |tasks: &VecDeque<ApplyTask>| tasks.front().is_some_and(|task| task.snapshot.is_some());
        if is_snapshot(tasks)
            && let Some(task) = tasks.pop_front()
        {
            let at = self.place_of(task.region)?;
            return self.regions[at].install(observer);
        }
        // In the order in which the regions came.
        let mut parts = std::mem::take(&mut self.parts);
        let mut bytes = 0;
        while bytes < self.most_batch_bytes
            && !is_snapshot(tasks)
            && let Some(task) = tasks.pop_front()
        {
            bytes += task.bytes;
            let region = self.place_of(task.region)?;
            let found = parts.iter().rposition(|part| part.region == region);
            let delegate = &mut self.regions[region].delegate;
            let at = found.unwrap_or_else(|| {
                parts.push(Part { region, prepared: delegate.begin() });
                parts.len() - 1
            });
            delegate.prepare(task, &mut parts[at].prepared)?;
        }
        for Part { region, prepared } in &mut parts {
            let RegionApplier { region, delegate, .. } = &mut self.regions[*region];
            delegate.seal(prepared);
            observer.note(Moment::Applying { region: *region, index: delegate.state().index });
        }
        if observer.fails(FailPoint::DataWrite) {
            return Err(EngineError::new("injected failure of a data write"));
        }
        if planted!(TellBeforeWrite) {
            let settled = parts.iter_mut().map(|part| std::mem::take(&mut part.prepared.settled));
            scheduler.settle_all(settled.flatten().collect());
        }
        self.write(&mut parts)?;
        let mut settled = Vec::new();
        for Part { region, prepared } in parts.drain(..) {
            let mut told = self.regions[region].publish(prepared, observer);
            if settled.is_empty() {
                settled = told;
            } else {
                settled.append(&mut told);
            }
        }
        self.parts = parts;
        let applied_at = Some(clock::now());
        settled.iter_mut().for_each(|settled| settled.applied_at = applied_at);
        scheduler.settle_all(settled);
        Ok(())
    }

    fn place_of(&self, region: u64) -> Result<usize, EngineError> {
        let found = self.regions.iter().position(|own| own.region == region);
        found
            .ok_or_else(|| EngineError::new(format!("entries of region {region}, which is another thread's")))
    }

    /// Writes what was prepared, of all regions at once.
    fn write(&mut self, parts: &mut [Part]) -> Result<(), EngineError> {
        if let [Part { region, prepared }] = parts {
            return self.regions[*region].engine.write(&prepared.batch);
        }
        for Part { region, prepared } in parts {
            self.regions[*region].engine.place(&mut prepared.batch, &mut self.together)?;
        }
        let written = self.engine.write(&self.together);
        self.together.clear();
        written
    }
}

/// What a batch has of one region.
pub(crate) struct Part {
    /// Its place among those of the thread.
    region: usize,
    prepared: Prepared,
}

impl RegionApplier {
    /// What was prepared is written: lets everybody know. Yields what that settles.
    fn publish(&mut self, prepared: Prepared, observer: &Observer) -> Vec<Settled> {
        let Prepared { batch, settled, bytes, changes } = prepared;
        self.delegate.written(batch);
        let (ApplyState { index, term }, conf_ver) = (self.delegate.state(), self.delegate.conf_ver());
        // ORDERING: Release, for the Acquire of whoever reads the index and then the data it stands for.
        self.applied.store(index, Ordering::Release);
        observer.note(Moment::Applied { region: self.region, index });
        // The report goes before the callbacks, so that a slow one delays no read that waits for this index.
        self.router.applied(ApplyRes { index, term, bytes, changes, conf_ver });
        settled
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
        // ORDERING: Release, as in `publish`.
        self.applied.store(index, Ordering::Release);
        observer.note(Moment::Applied { region: self.region, index });
        self.router.applied(ApplyRes { index, term, bytes: 0, changes: Vec::new(), conf_ver });
        Ok(())
    }
}
