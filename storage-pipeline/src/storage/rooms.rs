//! The rooms of a store, wired to each other: whoever has them runs them, threads in a store that is used, turns in a
//! simulator. Hands on a running store.

use std::{
    cell::Cell,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    apply::pool::{Applier, RegionApplier},
    client::oracle::TimestampOracle,
    completion_mode::Releaser,
    config::Config,
    engine::WriteBatch,
    local_reader::{LocalReader, RegionReader, lease::SharedLease},
    mailbox::Mailbox,
    maintenance::Maintenance,
    observe::Observer,
    raftstore::{
        router::Router,
        snapshot_sender::SnapshotSender,
        staging::Staging,
        store::{Store, apply_thread},
    },
    scheduler::{Scheduler, single_thread},
    storage::{
        recover::{Recovered, RecoveredRegion},
        running::{Handles, Running, Threads},
    },
    threads, worker_pool,
};

/// Everything that a thread of a store owns, before any thread runs.
pub(crate) struct Rooms {
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) store: Store,
    pub(crate) appliers: Vec<Applier>,
    pub(crate) maintenance: Maintenance,
    pub(crate) snapshot_sender: SnapshotSender,
    stagings: Vec<Arc<Staging>>,
    is_alone: bool,
}

impl Rooms {
    pub(crate) fn new(config: Config, recovered: Recovered, observer: Observer) -> Self {
        let Recovered { engine, regions, is_alone } = recovered;
        let most_batch_bytes = usize::try_from(config.max_apply_bytes).unwrap_or(usize::MAX);
        let apply_threads = config.apply_threads.min(regions.len());
        let (raftstore, workers) = (Mailbox::default(), Mailbox::default());
        let router = Router::new(raftstore.clone(), config.raftstore_mailbox, observer.clone());
        let reader = |recovered: &RecoveredRegion| RegionReader {
            engine: Arc::clone(&recovered.data.engine),
            lease: SharedLease::default(),
            router: router.of(recovered.peer.region()),
        };
        let reader = LocalReader {
            regions: regions.iter().map(reader).collect(),
            policy: config.read_policy,
            workers: workers.clone(),
            observer: observer.clone(),
        };
        let scheduler = Arc::new(Scheduler::new(config, reader, workers, observer));
        let applier = || Applier {
            tasks: Mailbox::default(),
            regions: Vec::new(),
            scheduler: Arc::clone(&scheduler),
            engine: Arc::clone(&engine),
            most_batch_bytes,
            together: WriteBatch::default(),
            parts: Vec::new(),
        };
        let mut appliers: Vec<_> = std::iter::repeat_with(applier).take(apply_threads).collect();
        let (mut peers, mut stagings) = (Vec::new(), Vec::new());
        let (mut data, mut truncated) = (Vec::new(), Vec::new());
        for recovered in regions {
            let region = recovered.peer.region();
            appliers[apply_thread(region, apply_threads)].regions.push(RegionApplier {
                region,
                engine: Arc::clone(&recovered.data.engine),
                staging: Arc::clone(&recovered.staging),
                delegate: recovered.delegate,
                applied: Arc::clone(&recovered.data.applied),
                router: router.of(region),
            });
            peers.push(recovered.peer);
            stagings.push(recovered.staging);
            data.push(recovered.data);
            truncated.push(recovered.truncated);
        }
        let maintenance = Maintenance {
            mailbox: Mailbox::default(),
            scheduler: Arc::clone(&scheduler),
            regions: data,
            truncated,
        };
        let transport = peers[0].transport();
        let apply = appliers.iter().map(|applier| applier.tasks.clone()).collect();
        let store = Store::new(peers, raftstore, apply, Arc::clone(&scheduler));
        let mailbox = store.snapshots.clone();
        let snapshot_sender =
            SnapshotSender { mailbox, transport, scheduler: Arc::clone(&scheduler), begun: Cell::default() };
        Self { scheduler, store, appliers, maintenance, snapshot_sender, stagings, is_alone }
    }

    /// Gives each room its thread.
    ///
    /// # Errors
    /// The operating system's refusal, after what was started has ended.
    pub(crate) fn start(self) -> io::Result<Running> {
        let Self { scheduler, store, appliers, maintenance, snapshot_sender, stagings, is_alone } = self;
        let threads = Arc::new(Threads {
            raftstore: (store.mailbox.clone(), Handles::default()),
            apply: (store.apply.clone(), Handles::default()),
            snapshots: (snapshot_sender.mailbox.clone(), Handles::default()),
            workers: Handles::default(),
            scheduler: Handles::default(),
            maintenance: (maintenance.mailbox.clone(), Handles::default()),
            regions: maintenance.regions.clone(),
            stagings,
        });
        // From here on an error drops `running`, which ends what was started.
        let running = Running {
            scheduler: Arc::clone(&scheduler),
            oracle: TimestampOracle::default(),
            status: store.regions.iter().map(|region| region.status.clone()).collect(),
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
        for (number, applier) in appliers.into_iter().enumerate() {
            start(&threads.apply.1, &format!("apply-{number}"), Box::new(move || applier.run()))?;
        }
        start(&threads.maintenance.1, "maintenance", Box::new(move || maintenance.run()))?;
        if !is_alone {
            start(&threads.snapshots.1, "snapshots", Box::new(move || snapshot_sender.run()))?;
        }
        start(&threads.raftstore.1, "raftstore", Box::new(move || store.run()))?;
        Ok(running)
    }
}
