//! The front door: opens a store, takes commands, answers through callbacks or by blocking, closes.

use std::{sync::Arc, time::Duration};

pub(crate) mod parts;
mod open;
pub(crate) mod identity;
pub(crate) mod recover;
pub(crate) mod rooms;
mod running;
mod timestamps;
mod raw;
mod replica;
mod region;
mod network;
mod cluster;

pub use cluster::Cluster;
pub use network::Network;
pub use parts::Parts;
pub use region::StoreRegion;
use running::Running;

use crate::{
    clock,
    command::{Command, Request},
    config::Config,
    error::{Error, OpenError, Outcome},
    observe::Observe,
    region::RegionContext,
    scheduler::task::Reply,
    threads,
};

/// The deadline of a command with a timeout that no clock can hold.
const FOREVER: Duration = Duration::from_secs(86_400);

/// A replica of a store, the only one or one of several, open in this process. Clones share it; it closes with
/// [`close`](Self::close) or when the last clone is dropped.
///
/// Every command is answered exactly once: through its callback, which runs on a thread of the pipeline or, where the
/// command is refused at the door, on the caller's; or as the return of the blocking form.
///
/// ```
/// use storage_pipeline::{Config, Storage};
/// let dir = tempfile::tempdir()?;
/// let storage = Storage::open(Config::new(dir.path()))?;
/// storage.raw_put(b"key", b"value").into_result()?;
/// assert_eq!(storage.raw_get(b"key").into_result()?.as_deref(), Some(&b"value"[..]));
/// storage.close();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Storage(Arc<Running>);

/// What is in flight in an open store. Everything is zero once all commands are settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlightCounts {
    /// Commands that were accepted and are not settled and released yet.
    pub commands: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Latches that are held.
    pub latches_held: usize,
    /// Commands that wait for a latch.
    pub latches_waiting: usize,
    /// Messages that wait for a thread.
    pub queued: usize,
}

impl InFlightCounts {
    /// Whether nothing is in flight.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        *self == Self::default()
    }
}

impl Storage {
    /// Opens the store in `config.dir`, creating it where there is none, and waits until it serves.
    ///
    /// # Errors
    /// What is wrong with the configuration or the data directory. Nothing that was acknowledged is lost by it.
    pub fn open(config: Config) -> Result<Self, OpenError> {
        config.validate().map_err(OpenError::Config)?;
        let parts = Parts::on_disk_with(&config.dir, config.raft_log)?;
        Self::open_with(config, parts, None)
    }

    /// Opens a store on parts of the caller's making, told to an observer: for tests, simulations and metrics.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        config: Config,
        parts: Parts,
        observer: Option<Arc<dyn Observe>>,
    ) -> Result<Self, OpenError> {
        callback_slot::assert_lock_free::<Option<callback_slot::Callback<Reply>>>();
        config.validate().map_err(OpenError::Config)?;
        open::open(config, parts, None, observer).map(|running| Self(Arc::new(running)))
    }

    /// Runs a command and waits for its outcome, at most the default timeout.
    ///
    /// In a callback, on whatever thread it runs, and elsewhere on a thread of a pipeline this is refused with
    /// [`Error::WouldBlockPipeline`]: the answer might need that very thread. Use [`submit`](Self::submit) there.
    pub fn execute<R: Request>(&self, request: R) -> Outcome<R::Output> {
        self.execute_within(request, self.0.scheduler.config.default_timeout)
    }

    /// Runs a command and waits for its outcome, at most this long.
    pub fn execute_within<R: Request>(&self, request: R, timeout: Duration) -> Outcome<R::Output> {
        if threads::is_pipeline() {
            return Outcome::NotExecuted(Error::WouldBlockPipeline);
        }
        let (callback, reply) = callback_slot::reply();
        self.submit_within(request, timeout, move |outcome| callback.call(outcome));
        reply.wait().expect("a callback runs exactly once, whatever becomes of its command")
    }

    /// Runs a command and calls back with its outcome, within the default timeout.
    ///
    /// The callback should be short: it runs on a thread of the pipeline, before later commands of the same batch are
    /// answered. A panic in it is caught and counted. One that submits again where the store refuses runs inside that
    /// very call, so it should count its attempts.
    pub fn submit<R: Request>(&self, request: R, callback: impl FnOnce(Outcome<R::Output>) + Send + 'static) {
        self.submit_within(request, self.0.scheduler.config.default_timeout, callback);
    }

    /// Runs a command and calls back with its outcome, within this time. When the time is up before the outcome is
    /// known, the callback says so; the command itself goes on where raft has it.
    pub fn submit_within<R: Request>(
        &self,
        request: R,
        timeout: Duration,
        callback: impl FnOnce(Outcome<R::Output>) + Send + 'static,
    ) {
        self.submit_named(request, None, timeout, callback);
    }

    fn submit_named<R: Request>(
        &self,
        request: R,
        named: Option<RegionContext>,
        timeout: Duration,
        callback: impl FnOnce(Outcome<R::Output>) + Send + 'static,
    ) {
        let command: Command = request.into();
        let now = clock::now();
        let deadline = now.checked_add(timeout).unwrap_or(now + FOREVER);
        self.0.scheduler.submit(command, named, deadline, move |reply| {
            callback(reply.map(|response| {
                R::output(response).expect("a command answers with the response that belongs to it")
            }));
        });
    }

    pub(crate) fn default_timeout(&self) -> Duration {
        self.0.scheduler.config.default_timeout
    }

    /// What is in flight.
    #[must_use]
    pub fn in_flight(&self) -> InFlightCounts {
        self.0.in_flight()
    }

    /// How many messages wait for the threads of each room, by the names of the rooms.
    pub fn queued(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.0.queued().into_iter()
    }

    /// Index of the last applied log entry, of the first region where there are several.
    #[must_use]
    pub fn applied_index(&self) -> u64 {
        self.0.applied_index(0)
    }

    /// How many callbacks panicked.
    #[must_use]
    pub fn callback_panics(&self) -> u64 {
        self.0.scheduler.callback_panics()
    }

    /// The fault that poisoned the store, if there was one. Close it, remove the cause, and open it again.
    #[must_use]
    pub fn fault(&self) -> Option<Arc<str>> {
        self.0.scheduler.fault().cloned()
    }

    /// Closes the store: takes nothing more, answers what was not proposed yet as *not executed*, lets what was
    /// proposed be applied and answered, and joins every thread. Other clones answer [`Error::Closed`] from then on; the
    /// directory can be opened again once they are dropped.
    ///
    /// In a callback the joining is left to a thread of its own and this returns at once.
    pub fn close(&self) {
        self.0.close();
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage").field("config", &self.0.scheduler.config).finish_non_exhaustive()
    }
}
