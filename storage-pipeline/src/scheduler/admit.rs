//! The way in: a command is checked, admitted, latched, and sent for its snapshot, where it needs one.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use crate::{
    clock,
    command::Command,
    completion_mode::Releaser,
    config::Config,
    error::{Error, Outcome},
    local_reader::LocalReader,
    mailbox::Mailbox,
    observe::{Moment, Observer},
    region::{FIRST_REGION, RegionContext, Regions},
    scheduler::{
        in_flight::InFlight,
        latches::Latches,
        single_thread::SchedulerMsg,
        task::{Job, Phase, Reply, Settled, Task, TaskContext},
    },
    threads,
    worker_pool::WorkerTask,
};

/// What the steps of a command share. It owns no thread; every thread of the pipeline holds a handle to it.
#[derive(Debug)]
pub(crate) struct Scheduler {
    pub(crate) config: Config,
    pub(crate) latches: Latches<Job>,
    pub(crate) in_flight: InFlight,
    pub(crate) regions: Regions,
    pub(crate) reader: LocalReader,
    /// The scheduler thread's mailbox, in the modes that have one.
    pub(crate) own: Mailbox<SchedulerMsg>,
    pub(crate) workers: Mailbox<WorkerTask>,
    pub(crate) observer: Observer,
    /// Set once, by the first fault.
    pub(super) fault: OnceLock<Arc<str>>,
    /// Set by close and by a fault: successors are no longer started.
    pub(super) closing: AtomicBool,
    pub(super) next_cid: AtomicU64,
    pub(super) callback_panics: AtomicU64,
}

impl Scheduler {
    pub(crate) fn new(
        config: Config,
        reader: LocalReader,
        workers: Mailbox<WorkerTask>,
        observer: Observer,
    ) -> Self {
        Self {
            latches: Latches::new(config.latch_slots),
            in_flight: InFlight::new(config.max_in_flight_commands, config.max_in_flight_bytes),
            regions: Regions::split_at(&config.split_keys),
            reader,
            own: Mailbox::default(),
            workers,
            observer,
            fault: OnceLock::new(),
            closing: AtomicBool::new(false),
            next_cid: AtomicU64::new(1),
            callback_panics: AtomicU64::new(0),
            config,
        }
    }

    /// Takes a command. Its callback runs exactly once, whatever becomes of it; where the command is refused, it runs
    /// here, before the return.
    pub(crate) fn submit(
        &self,
        command: Command,
        named: Option<RegionContext>,
        deadline: Instant,
        callback: impl FnOnce(Reply) + Send + 'static,
    ) {
        // In some modes a caller's thread holds latches here and starts the commands of others.
        threads::guard("of a caller", self, || self.take(command, named, deadline, callback));
    }

    fn take(
        &self,
        command: Command,
        named: Option<RegionContext>,
        deadline: Instant,
        callback: impl FnOnce(Reply) + Send + 'static,
    ) {
        let region = self.regions.of_command(&command, named);
        let context = TaskContext {
            // ORDERING: Relaxed; only uniqueness matters.
            cid: self.next_cid.fetch_add(1, Ordering::Relaxed),
            region: *region.as_ref().unwrap_or(&FIRST_REGION),
            epoch: named.and_then(|named| named.epoch),
            hashes: command.latch_hashes(),
            deadline,
            bytes: command.size_bytes(),
            phase: Phase::default(),
        };
        let task = Task::new(context, callback);
        if let Err(error) = self.admit(&command, &task, region) {
            self.tell(&task, Outcome::NotExecuted(error), None);
            return;
        }
        let TaskContext { cid, region, .. } = *task.context();
        self.observer.note(Moment::Admitted {
            cid,
            region,
            kind: command.name(),
            is_read: command.is_read(),
        });
        let job = Job { task, command };
        if job.task.is_read() {
            self.go_on(self.send_for_snapshot(job));
        } else if self.config.completion_mode.releaser() == Releaser::SchedulerThread {
            if let Err(SchedulerMsg::Command(job)) = self.own.send(SchedulerMsg::Command(job)) {
                self.go_on(Err(Settled::not_executed(job.task, self.refusal())));
            }
        } else {
            self.start(job);
        }
    }

    /// The number that the next command gets.
    #[cfg(feature = "simulator")]
    pub(crate) fn next_cid(&self) -> u64 {
        // ORDERING: Relaxed; the simulator has one thread.
        self.next_cid.load(Ordering::Relaxed)
    }

    fn admit(&self, command: &Command, task: &Task, region: Result<u64, Error>) -> Result<(), Error> {
        command.validate(&self.config).map_err(Error::InvalidCommand)?;
        region?;
        if self.is_closing() {
            return Err(self.refusal());
        }
        if task.context().deadline <= clock::now() {
            return Err(Error::DeadlineExceeded);
        }
        let room = self.in_flight.reserve(task.context().bytes).ok_or(Error::SchedTooBusy)?;
        self.in_flight.enter(room, task).map_err(|_| self.refusal())
    }

    /// Acquires the latches of a write; one that has to wait is queued and started by whoever releases.
    pub(super) fn start(&self, job: Job) {
        if let Some(job) = self.latches.acquire(job) {
            self.go_on(self.latched(job));
        }
    }

    fn go_on(&self, sent: Result<(), Settled>) {
        if let Err(settled) = sent {
            self.settle(settled);
        }
    }

    /// Goes on with a job that holds its latches. A snapshot is taken after that, so it sees its predecessors.
    ///
    /// # Errors
    /// The command, settled, where nobody takes the job or the store closes. It is the caller's to pass on, so that a
    /// row of refusals is a loop and no recursion.
    pub(super) fn latched(&self, job: Job) -> Result<(), Settled> {
        if self.is_closing() {
            return Err(Settled::not_executed(job.task, self.refusal()));
        }
        let (cid, is_blind) = (job.task.context().cid, job.is_blind());
        self.observer.note(Moment::LatchesHeld { cid, is_blind });
        self.propose_or_look(job)
    }

    pub(super) fn send_for_snapshot(&self, job: Job) -> Result<(), Settled> {
        self.reader.snapshot(job).map_err(|(job, error)| {
            let error = if error == Error::Closed { self.refusal() } else { error };
            Settled::not_executed(job.task, error)
        })
    }

    /// Why nothing more is taken.
    pub(crate) fn refusal(&self) -> Error {
        self.fault.get().map_or(Error::Closed, |fault| Error::Poisoned(Arc::clone(fault)))
    }

    pub(crate) fn is_closing(&self) -> bool {
        // ORDERING: Relaxed; a hint. What it must exclude is excluded by the books, which close under their locks.
        self.closing.load(Ordering::Relaxed)
    }
}
