//! An open store: its threads, in the order in which they end, and their mailboxes.

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    thread::JoinHandle,
};

use crate::{
    apply::task::ApplyTask,
    client::oracle::TimestampOracle,
    mailbox::Mailbox,
    maintenance::{Never, RegionData, sync_data},
    raftstore::{msg::ToRegion, snapshot::OutgoingSnapshot, staging::Staging, status::SharedStatus},
    scheduler::Scheduler,
    storage::InFlightCounts,
    threads,
};

/// The name of the room that sends snapshots.
const SNAPSHOTS: &str = "snapshots";

/// Everything that runs.
pub(crate) struct Running {
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) oracle: TimestampOracle,
    /// What each region's replica knows of its group, in the order of their ids.
    pub(crate) status: Vec<SharedStatus>,
    /// There is no other replica, and none can be reached.
    pub(crate) is_alone: bool,
    pub(crate) threads: Arc<Threads>,
}

/// The threads and the mailboxes that end them. Shared with whoever joins them.
pub(crate) struct Threads {
    pub(crate) raftstore: (Mailbox<ToRegion>, Handles),
    pub(crate) apply: (Vec<Mailbox<ApplyTask>>, Handles),
    pub(crate) snapshots: (Mailbox<OutgoingSnapshot>, Handles),
    pub(crate) workers: Handles,
    pub(crate) scheduler: Handles,
    pub(crate) maintenance: (Mailbox<Never>, Handles),
    /// Each region's data, in the order of their ids.
    pub(crate) regions: Vec<RegionData>,
    /// Where snapshots of other replicas wait, for each region.
    pub(crate) stagings: Vec<Arc<Staging>>,
}

/// The handles of one group of threads, until they are joined.
pub(crate) type Handles = Mutex<Vec<JoinHandle<()>>>;

impl Running {
    pub(crate) fn in_flight(&self) -> InFlightCounts {
        let (commands, bytes) = self.scheduler.in_flight.counts();
        let (latches_held, latches_waiting) = self.scheduler.latches.counts();
        // A snapshot that waits to be sent is no command's.
        let of_commands = |(room, _): &(&str, usize)| *room != SNAPSHOTS;
        let queued = self.queued().into_iter().filter(of_commands).map(|(_, count)| count).sum();
        InFlightCounts { commands, bytes, latches_held, latches_waiting, queued }
    }

    /// How many messages wait for the threads of each room.
    pub(crate) fn queued(&self) -> [(&'static str, usize); 5] {
        let threads = &self.threads;
        [
            ("scheduler", self.scheduler.own.len()),
            ("workers", self.scheduler.workers.len()),
            ("raftstore", threads.raftstore.0.len()),
            ("apply", threads.apply.0.iter().map(Mailbox::len).sum()),
            (SNAPSHOTS, threads.snapshots.0.len()),
        ]
    }

    /// The applied index of a region, counted from zero.
    pub(crate) fn applied_index(&self, at: usize) -> u64 {
        // ORDERING: Acquire, for the Release of apply: who reads the index finds the data it stands for.
        self.threads.regions[at].applied.load(Ordering::Acquire)
    }

    /// Closes once; later calls wait until the first is through.
    pub(crate) fn close(&self) {
        self.scheduler.close();
        let (threads, scheduler) = (Arc::clone(&self.threads), Arc::clone(&self.scheduler));
        if !threads::is_pipeline() {
            threads.end(&scheduler);
            return;
        }
        // A pipeline thread cannot join itself.
        let joiner = std::thread::Builder::new().name("closer".to_owned());
        if let Err(error) = joiner.spawn(move || threads.end(&scheduler)) {
            tracing::error!(%error, "no thread to close the store with; its threads end with the process");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.close();
    }
}

impl Threads {
    /// Ends the threads in the order in which work flows, so that each finds the next one alive: what raft has
    /// committed is still applied, what is applied is still told.
    fn end(&self, scheduler: &Scheduler) {
        end(&self.raftstore.0, &self.raftstore.1);
        end(&self.snapshots.0, &self.snapshots.1);
        self.apply.0.iter().for_each(Mailbox::close);
        join(&self.apply.1);
        self.apply.0.iter().for_each(drain);
        end(&scheduler.workers, &self.workers);
        end(&scheduler.own, &self.scheduler);
        end(&self.maintenance.0, &self.maintenance.1);
        scheduler.discard();
        if scheduler.fault().is_none()
            && let Err(error) = sync_data(&self.regions)
        {
            // Nothing is lost: the log has it all, and the next start replays what the data lacks.
            tracing::warn!(%error, "the data could not be synced at the end");
        }
    }
}

/// Ends a group of threads, and drops what it left in its mailbox where a fault had ended it before. The books still
/// know the callers.
fn end<T>(mailbox: &Mailbox<T>, handles: &Handles) {
    mailbox.close();
    join(handles);
    drain(mailbox);
}

fn drain<T>(mailbox: &Mailbox<T>) {
    while mailbox.receive().is_some() {}
}

/// Joins a group. The lock is held meanwhile, so that a second closer waits for the first; no thread of the pipeline
/// ever takes it.
fn join(handles: &Handles) {
    let mut handles = handles.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for handle in handles.drain(..) {
        // A thread's panic was caught, and poisoned the store.
        let _ = handle.join();
    }
}
