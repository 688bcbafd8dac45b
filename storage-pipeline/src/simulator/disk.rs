//! The disks of one replica, which outlive it: a data engine and a raft log in memory that know what is durable. Hands a
//! starting replica its two stores, and takes from them what a power loss takes.

use std::{ops::Range, path::PathBuf, sync::Arc};

use parking_lot::Mutex;

use crate::{
    engine::{Engine, EngineError, Snapshot, WriteBatch, memory::MemoryEngine},
    raftstore::log_storage::{Fault, MemoryLog},
    simulator::random::Random,
    storage::Parts,
};

/// Both stores of a replica.
#[derive(Clone, Default)]
pub(super) struct Disk {
    pub(super) data: DataDisk,
    pub(super) log: MemoryLog,
}

impl Disk {
    /// What a replica opens.
    pub(super) fn parts(&self, replica: u64) -> Parts {
        let dir = PathBuf::from(format!("replica-{replica}"));
        Parts { dir, engine: Arc::new(self.data.clone()), log: Box::new(self.log.clone()) }
    }

    /// The process is gone, and what it had not synced is gone in part. The log keeps its writes up to some point; the
    /// data may lack any of its writes and have later ones, as with RocksDB, which does not see every hole in its own log.
    pub(super) fn lose_power(&self, random: &mut Random) {
        self.log.lose_power_after(random.below(self.log.unsynced() + 1));
        let mut state = self.data.0.lock();
        let kept = random.below(state.unsynced.len() + 1);
        let hole = if random.one_in(2) { random.below(kept + 1) } else { kept };
        let hole = hole..kept.min(hole + 1 + random.below(20));
        state.lose(kept, &hole);
    }

    /// Planned faults that did not happen will not.
    pub(super) fn forget_faults(&self) {
        self.log.fail_next(None);
        self.data.0.lock().fails = None;
    }

    /// Plans a failure of the log's or the data's next write or sync.
    pub(super) fn plan_fault(&self, random: &mut Random) -> &'static str {
        let fault = if random.one_in(2) { Fault::Write } else { Fault::Sync };
        let is_log = random.one_in(2);
        match is_log {
            true => self.log.fail_next(fault),
            false => self.data.0.lock().fails = Some(fault),
        }
        match (is_log, fault) {
            (true, Fault::Write) => "log write fails",
            (true, Fault::Sync) => "log sync fails",
            (false, Fault::Write) => "data write fails",
            (false, Fault::Sync) => "data sync fails",
        }
    }
}

/// A data engine of which only what was synced is durable.
#[derive(Clone, Default)]
pub(super) struct DataDisk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now: MemoryEngine,
    synced: MemoryEngine,
    /// The writes since.
    unsynced: Vec<WriteBatch>,
    fails: Option<Fault>,
}

impl State {
    /// Keeps so many of the writes since the last sync, without those in the hole.
    fn lose(&mut self, kept: usize, hole: &Range<usize>) {
        for (at, batch) in self.unsynced.drain(..).enumerate() {
            if at < kept && !hole.contains(&at) {
                self.synced.write(&batch).expect("memory takes every write");
            }
        }
        self.now = self.synced.fork();
    }
}

impl Engine for DataDisk {
    fn write(&self, batch: &WriteBatch) -> Result<(), EngineError> {
        let mut state = self.0.lock();
        let fails = state.fails.take_if(|fault| *fault == Fault::Write);
        // Whether a write that fails has reached the disk is not known; this one has.
        state.now.write(batch)?;
        state.unsynced.push(batch.clone());
        fails.map_or(Ok(()), |_| Err(EngineError::new("injected failure of a write")))
    }

    fn sync(&self) -> Result<(), EngineError> {
        let mut state = self.0.lock();
        if state.fails.take_if(|fault| *fault == Fault::Sync).is_some() {
            return Err(EngineError::new("injected failure of a sync"));
        }
        state.synced = state.now.fork();
        state.unsynced.clear();
        Ok(())
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        self.0.lock().now.snapshot()
    }
}
