//! A pipeline over stores in memory: everything but the disk. What is counted of it (instructions, allocations) repeats
//! exactly.

use std::{sync::Arc, time::Duration};

use storage_pipeline::{
    CompletionMode, Config, OpenError, Storage,
    engine::{Engine, EngineError, Snapshot, WriteBatch, memory::MemoryEngine},
    observe::{Moment, Observe},
    raftstore::log_storage::{LogEngine, LogWrite, MemoryLog, Recovered},
    storage::Parts,
};

use crate::allocations::{name_thread, not_counted};

/// A store whose own allocations are not counted.
struct NotCounted<S>(S);

impl Engine for NotCounted<MemoryEngine> {
    fn write(&self, batch: &WriteBatch) -> Result<(), EngineError> {
        not_counted(|| self.0.write(batch))
    }

    fn sync(&self) -> Result<(), EngineError> {
        not_counted(|| self.0.sync())
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        not_counted(|| self.0.snapshot())
    }
}

impl LogEngine for NotCounted<MemoryLog> {
    fn recover(&mut self, region: u64) -> Result<Recovered, EngineError> {
        not_counted(|| self.0.recover(region))
    }

    fn write(&mut self, writes: &[LogWrite<'_>]) -> Result<(), EngineError> {
        not_counted(|| self.0.write(writes))
    }

    fn entries(
        &self,
        region: u64,
        low: u64,
        high: u64,
        max_bytes: u64,
    ) -> Result<Vec<raft::eraftpb::Entry>, EngineError> {
        not_counted(|| self.0.entries(region, low, high, max_bytes))
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        not_counted(|| self.0.sync())
    }
}

/// Assigns each thread's allocations to its group.
struct NamesThreads;

impl Observe for NamesThreads {
    fn moment(&self, _: Moment) {
        name_thread();
    }
}

/// Opens a pipeline over empty stores in memory. Its clock ticks seldom and nobody stays awake for the next write, so
/// that a count of what one write costs has nothing else in it.
///
/// # Errors
/// As `Storage::open_with`.
pub fn open(mode: CompletionMode) -> Result<Storage, OpenError> {
    let mut config = Config::new("in memory");
    config.completion_mode = mode;
    config.tick = Duration::from_secs(10);
    config.stay_awake = Duration::ZERO;
    let engine = Arc::new(NotCounted(MemoryEngine::default()));
    let log = Box::new(NotCounted(MemoryLog::new()));
    let parts = Parts { dir: config.dir.clone(), engine, log };
    Storage::open_with(config, parts, Some(Arc::new(NamesThreads)))
}
