//! One log engine for all regions of a store. Hands each region's log its own view of it, and writes for several at once.

use std::sync::Arc;

use raft::eraftpb::Entry;

use super::{LogEngine, LogWrite, Recovered};
use crate::{engine::EngineError, primitive::Mutex, region::FIRST_REGION};

/// The log of one region in an engine that may keep those of others too.
///
/// All of them are used by the thread of the raftstore alone, so the lock is never waited for.
#[derive(Clone)]
pub struct RegionLog {
    engine: Arc<Mutex<Box<dyn LogEngine>>>,
    region: u64,
}

impl RegionLog {
    /// The log of another region in the same engine.
    #[must_use]
    pub fn of(&self, region: u64) -> Self {
        Self { engine: Arc::clone(&self.engine), region }
    }

    /// Id of the region.
    #[must_use]
    pub const fn region(&self) -> u64 {
        self.region
    }

    pub(super) fn recover(&self) -> Result<Recovered, EngineError> {
        self.engine.lock().recover(self.region)
    }

    /// Writes to this region and to others.
    pub(crate) fn write(&self, writes: &[LogWrite<'_>]) -> Result<(), EngineError> {
        self.engine.lock().write(writes)
    }

    pub(super) fn entries(&self, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, EngineError> {
        self.engine.lock().entries(self.region, low, high, max_bytes)
    }

    pub(super) fn sync(&self) -> Result<(), EngineError> {
        self.engine.lock().sync()
    }
}

impl From<Box<dyn LogEngine>> for RegionLog {
    /// The log of the first region.
    fn from(engine: Box<dyn LogEngine>) -> Self {
        Self { engine: Arc::new(Mutex::new(engine)), region: FIRST_REGION }
    }
}
