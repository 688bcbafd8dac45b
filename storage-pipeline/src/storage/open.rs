//! Opening: wires the rooms together, starts the threads, and waits until a store without others serves.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    apply::{delegate::Delegate, pool::Applier},
    client::oracle::TimestampOracle,
    completion_mode::Releaser,
    config::Config,
    engine::Engine,
    error::{Error, OpenError},
    local_reader::{LocalReader, lease::SharedLease},
    mailbox::Mailbox,
    maintenance::Maintenance,
    observe::{Observe, Observer},
    raftstore::{peer::Peer, router::Router, status::SharedStatus, store::Store, transport::Transport},
    scheduler::{Scheduler, single_thread},
    storage::{
        Parts,
        recover::{Recovered, recover},
        running::{Handles, Running, Threads},
    },
    threads, worker_pool,
};

/// Starts everything.
pub(super) fn open(
    config: Config,
    parts: Parts,
    transport: Option<Box<dyn Transport>>,
    observe: Option<Arc<dyn Observe>>,
) -> Result<Running, OpenError> {
    let observer = observe.map(Observer::new).unwrap_or_default();
    let is_alone = transport.is_none();
    let (dir, engine) = (parts.dir.clone(), Arc::clone(&parts.engine));
    let Recovered { peer, delegate, applied, truncated } = recover(&config, parts, transport, &observer)?;
    let wires = Wires::new(config, &engine, observer);
    let applied = Arc::new(AtomicU64::new(applied));
    let running = wires.start(peer, delegate, &applied, truncated, engine);
    let running = running.map_err(|source| OpenError::Io { path: dir, source })?;
    if is_alone {
        wait_until_serving(&running)?;
    }
    Ok(running)
}

/// The mailboxes and handles between the rooms, before any thread runs.
struct Wires {
    scheduler: Arc<Scheduler>,
    raftstore: Mailbox<crate::raftstore::msg::StoreMsg>,
    router: Router,
    apply: Mailbox<crate::apply::task::ApplyTask>,
}

impl Wires {
    fn new(config: Config, engine: &Arc<dyn Engine>, observer: Observer) -> Self {
        let raftstore = Mailbox::default();
        let router = Router::new(raftstore.clone(), config.raftstore_mailbox, observer.clone());
        let workers = Mailbox::default();
        let reader = LocalReader {
            engine: Arc::clone(engine),
            lease: SharedLease::default(),
            policy: config.read_policy,
            router: router.clone(),
            workers: workers.clone(),
            observer: observer.clone(),
        };
        let scheduler = Arc::new(Scheduler::new(config, reader, workers, observer));
        Self { scheduler, raftstore, router, apply: Mailbox::default() }
    }

    fn start(
        self,
        peer: Peer,
        delegate: Delegate,
        applied: &Arc<AtomicU64>,
        truncated: u64,
        engine: Arc<dyn Engine>,
    ) -> io::Result<Running> {
        let Self { scheduler, raftstore, router, apply } = self;
        let config = scheduler.config.clone();
        let threads = Arc::new(Threads {
            raftstore: (raftstore.clone(), Handles::default()),
            apply: (apply.clone(), Handles::default()),
            workers: Handles::default(),
            scheduler: Handles::default(),
            maintenance: (Mailbox::default(), Handles::default()),
            engine: Arc::clone(&engine),
        });
        // From here on an error drops `running`, which ends what was started.
        let running = Running {
            scheduler: Arc::clone(&scheduler),
            oracle: TimestampOracle::default(),
            applied: Arc::clone(applied),
            status: SharedStatus::default(),
            threads: Arc::clone(&threads),
        };
        let start = |group: &Handles, name: &str, body: Box<dyn FnOnce() + Send>| {
            let handle = threads::spawn(name, &scheduler, body)?;
            group.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(handle);
            io::Result::Ok(())
        };
        if config.completion_mode.releaser() == Releaser::SchedulerThread {
            let own = Arc::clone(&scheduler);
            start(&threads.scheduler, "scheduler", Box::new(move || single_thread::run(&own)))?;
        }
        for number in 0..config.worker_threads {
            let own = Arc::clone(&scheduler);
            let body = Box::new(move || worker_pool::run(&own));
            start(&threads.workers, &format!("worker-{number}"), body)?;
        }
        let applier = Applier {
            tasks: apply.clone(),
            engine: Arc::clone(&engine),
            delegate,
            applied: Arc::clone(applied),
            router: router.clone(),
            scheduler: Arc::clone(&scheduler),
            most_batch_bytes: usize::try_from(config.max_apply_bytes).unwrap_or(usize::MAX),
        };
        start(&threads.apply.1, "apply-0", Box::new(move || applier.run()))?;
        let maintenance = Maintenance {
            mailbox: threads.maintenance.0.clone(),
            scheduler: Arc::clone(&scheduler),
            engine,
            router,
            applied: Arc::clone(applied),
            truncated,
        };
        start(&threads.maintenance.1, "maintenance", Box::new(move || maintenance.run()))?;
        let own = Arc::clone(&scheduler);
        let status = running.status.clone();
        let store = Store { peer, mailbox: raftstore, apply, scheduler: own, status, tick: config.tick };
        start(&threads.raftstore.1, "raftstore", Box::new(move || store.run()))?;
        Ok(running)
    }
}

/// Waits until this replica leads and has applied what its log held: only then may it read.
fn wait_until_serving(running: &Running) -> Result<(), OpenError> {
    let timeout = running.scheduler.config.open_timeout;
    let started = Instant::now();
    loop {
        if let Some(fault) = running.scheduler.fault() {
            return Err(OpenError::NotReady { waited: started.elapsed(), what: fault.to_string() });
        }
        if running.scheduler.reader.lease.term_at(Instant::now()).is_some() {
            return Ok(());
        }
        if started.elapsed() >= timeout {
            let index = running.applied.load(Ordering::Relaxed);
            let what = Error::NotLeader { leader: None };
            let what = format!("{what}; applied up to entry {index}");
            return Err(OpenError::NotReady { waited: started.elapsed(), what });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
