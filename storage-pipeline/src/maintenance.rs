//! What has to happen by the clock: callers whose deadline passed are answered, and the raft log is truncated once
//! the data behind it is synced. One thread; it ends when its mailbox is closed.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    clock,
    engine::{Engine, EngineError, WriteBatch},
    mailbox::{Mailbox, Received},
    planted::planted,
    raftstore::router::Router,
    scheduler::Scheduler,
    txn::meta::Number,
};

/// How often deadlines are looked at. A caller hears of its deadline at most this much later.
const PERIOD: Duration = Duration::from_millis(10);

/// Nobody sends to this thread; its mailbox only ends it.
pub(crate) enum Never {}

/// What the thread owns and holds.
pub(crate) struct Maintenance {
    pub(crate) mailbox: Mailbox<Never>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) router: Router,
    pub(crate) applied: Arc<AtomicU64>,
    /// Up to where the log was asked to be truncated.
    pub(crate) truncated: u64,
}

impl Maintenance {
    /// Runs until the mailbox is closed.
    pub(crate) fn run(mut self) {
        let mut nothing = VecDeque::new();
        while self.mailbox.receive_all(&mut nothing, Some(Instant::now() + PERIOD)) != Received::Closed {
            if !self.turn() {
                return;
            }
        }
    }

    /// Looks at the deadlines and at the log once. Says whether the thread goes on.
    pub(crate) fn turn(&mut self) -> bool {
        self.scheduler.tell_overdue(clock::now());
        if let Err(error) = self.truncate_log() {
            // A failed sync is never repeated: what reached the disk is unknown from here on.
            self.scheduler.poison(&format!("syncing the data: {error}"));
            return false;
        }
        true
    }

    fn truncate_log(&mut self) -> Result<(), EngineError> {
        // ORDERING: Relaxed, because nothing is read by it; the index that counts is read at the sync.
        let applied = self.applied.load(Ordering::Relaxed);
        if self.scheduler.is_closing() || applied - self.truncated < self.scheduler.config.log_gc_entries {
            return Ok(());
        }
        let synced =
            if planted!(TruncatesUnsynced) { applied } else { sync_data(&*self.engine, &self.applied)? };
        self.router.truncate(synced);
        self.truncated = synced;
        Ok(())
    }
}

/// Makes what is applied durable, and notes it in the data for the next start. Returns its index.
///
/// # Errors
/// The engine's refusal, which is never retried.
pub(crate) fn sync_data(engine: &dyn Engine, applied: &AtomicU64) -> Result<u64, EngineError> {
    // ORDERING: Acquire, for the Release of apply: the data up to this index was written before the sync below.
    let applied = applied.load(Ordering::Acquire);
    engine.sync()?;
    let mut batch = WriteBatch::default();
    batch.push(Number::Synced.put(applied));
    engine.write(&batch)?;
    Ok(applied)
}
