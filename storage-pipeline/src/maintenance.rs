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
    scheduler::Scheduler,
    txn::meta::Number,
};

/// How often deadlines are looked at. A caller hears of its deadline at most this much later.
const PERIOD: Duration = Duration::from_millis(10);

/// Nobody sends to this thread; its mailbox only ends it.
pub(crate) enum Never {}

/// A region's part of the data, and how far it is applied.
#[derive(Clone)]
pub(crate) struct RegionData {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) applied: Arc<AtomicU64>,
}

/// What the thread owns and holds.
pub(crate) struct Maintenance {
    pub(crate) mailbox: Mailbox<Never>,
    pub(crate) scheduler: Arc<Scheduler>,
    /// In the order of their ids.
    pub(crate) regions: Vec<RegionData>,
    /// Up to where the log of each was asked to be truncated.
    pub(crate) truncated: Vec<u64>,
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

    /// One sync is for all regions, so that all are truncated where one has entries enough.
    fn truncate_log(&mut self) -> Result<(), EngineError> {
        let enough = self.scheduler.config.log_gc_entries;
        // ORDERING: Relaxed, because nothing is read by it; the index that counts is read at the sync.
        let applied = || self.regions.iter().map(|region| region.applied.load(Ordering::Relaxed));
        let is_due = applied().zip(&self.truncated).any(|(applied, truncated)| applied - truncated >= enough);
        if self.scheduler.is_closing() || !is_due {
            return Ok(());
        }
        let synced =
            if planted!(TruncatesUnsynced) { applied().collect() } else { sync_data(&self.regions)? };
        for (region, index) in self.scheduler.reader.regions.iter().zip(&synced) {
            region.router.truncate(*index);
        }
        self.truncated = synced;
        Ok(())
    }
}

/// Makes what is applied durable, with one sync for all regions, and notes it in the data for the next start. Returns the
/// index of each.
///
/// # Errors
/// The engine's refusal, which is never retried.
pub(crate) fn sync_data(regions: &[RegionData]) -> Result<Vec<u64>, EngineError> {
    // ORDERING: Acquire, for the Release of apply: the data up to this index was written before the sync below.
    let applied: Vec<_> = regions.iter().map(|region| region.applied.load(Ordering::Acquire)).collect();
    if let Some(any) = regions.first() {
        any.engine.sync()?;
    }
    for (region, applied) in regions.iter().zip(&applied) {
        let mut batch = WriteBatch::default();
        batch.push(Number::Synced.put(*applied));
        region.engine.write(&batch)?;
    }
    Ok(applied)
}
