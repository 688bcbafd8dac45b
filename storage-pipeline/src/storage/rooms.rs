//! The rooms of a store, wired to each other: whoever has them runs them, threads in a store that is used, turns in a
//! simulator. Hands on a running store.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    apply::pool::Applier,
    client::oracle::TimestampOracle,
    completion_mode::Releaser,
    config::Config,
    engine::Engine,
    local_reader::{LocalReader, lease::SharedLease},
    mailbox::Mailbox,
    maintenance::Maintenance,
    observe::Observer,
    raftstore::{router::Router, snapshot_sender::SnapshotSender, store::Store},
    scheduler::{Scheduler, single_thread},
    storage::{
        recover::Recovered,
        running::{Handles, Running, Threads},
    },
    threads, worker_pool,
};

/// Everything that a thread of a store owns, before any thread runs.
pub(crate) struct Rooms {
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) store: Store,
    pub(crate) applier: Applier,
    pub(crate) maintenance: Maintenance,
    pub(crate) snapshot_sender: SnapshotSender,
    is_alone: bool,
}

impl Rooms {
    pub(crate) fn new(
        config: Config,
        recovered: Recovered,
        engine: &Arc<dyn Engine>,
        observer: Observer,
    ) -> Self {
        let Recovered { peer, delegate, applied, truncated, staging, is_alone } = recovered;
        let most_batch_bytes = usize::try_from(config.max_apply_bytes).unwrap_or(usize::MAX);
        let (raftstore, workers, apply) = (Mailbox::default(), Mailbox::default(), Mailbox::default());
        let router = Router::new(raftstore.clone(), config.raftstore_mailbox, observer.clone());
        let reader = LocalReader {
            engine: Arc::clone(engine),
            lease: SharedLease::default(),
            policy: config.read_policy,
            router: router.clone(),
            workers: workers.clone(),
            observer: observer.clone(),
        };
        let scheduler = Arc::new(Scheduler::new(config, reader, workers, observer));
        let applier = Applier {
            tasks: apply.clone(),
            engine: Arc::clone(engine),
            staging,
            delegate,
            applied: Arc::clone(&applied),
            router: router.clone(),
            scheduler: Arc::clone(&scheduler),
            most_batch_bytes,
        };
        let maintenance = Maintenance {
            mailbox: Mailbox::default(),
            scheduler: Arc::clone(&scheduler),
            engine: Arc::clone(engine),
            router: router.clone(),
            applied,
            truncated,
        };
        let transport = peer.transport();
        let store = Store::new(peer, raftstore, apply, Arc::clone(&scheduler));
        let mailbox = store.snapshots.clone();
        let snapshot_sender =
            SnapshotSender { mailbox, transport, router, scheduler: Arc::clone(&scheduler) };
        Self { scheduler, store, applier, maintenance, snapshot_sender, is_alone }
    }

    /// Gives each room its thread.
    ///
    /// # Errors
    /// The operating system's refusal, after what was started has ended.
    pub(crate) fn start(self) -> io::Result<Running> {
        let Self { scheduler, store, applier, maintenance, snapshot_sender, is_alone } = self;
        let threads = Arc::new(Threads {
            raftstore: (store.mailbox.clone(), Handles::default()),
            apply: (applier.tasks.clone(), Handles::default()),
            snapshots: (snapshot_sender.mailbox.clone(), Handles::default()),
            workers: Handles::default(),
            scheduler: Handles::default(),
            maintenance: (maintenance.mailbox.clone(), Handles::default()),
            engine: Arc::clone(&applier.engine),
            applied: Arc::clone(&applier.applied),
            staging: Arc::clone(&applier.staging),
        });
        // From here on an error drops `running`, which ends what was started.
        let running = Running {
            scheduler: Arc::clone(&scheduler),
            oracle: TimestampOracle::default(),
            applied: Arc::clone(&applier.applied),
            status: store.status.clone(),
            is_alone,
            threads: Arc::clone(&threads),
        };
        let start = |group: &Mutex<Vec<_>>, name: &str, body: Box<dyn FnOnce() + Send>| {
            let handle = threads::spawn(name, &scheduler, body)?;
            group.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
            io::Result::Ok(())
        };
        if scheduler.config.completion_mode.releaser() == Releaser::SchedulerThread {
            let own = Arc::clone(&scheduler);
            start(&threads.scheduler, "scheduler", Box::new(move || single_thread::run(&own)))?;
        }
        for number in 0..scheduler.config.worker_threads {
            let own = Arc::clone(&scheduler);
            start(&threads.workers, &format!("worker-{number}"), Box::new(move || worker_pool::run(&own)))?;
        }
        start(&threads.apply.1, "apply-0", Box::new(move || applier.run()))?;
        start(&threads.maintenance.1, "maintenance", Box::new(move || maintenance.run()))?;
        if !is_alone {
            start(&threads.snapshots.1, "snapshots", Box::new(move || snapshot_sender.run()))?;
        }
        start(&threads.raftstore.1, "raftstore", Box::new(move || store.run()))?;
        Ok(running)
    }
}
