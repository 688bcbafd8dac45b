//! The raft log and hard state as raft reads them, over a [`LogEngine`] that keeps them: recent entries and all terms
//! are answered from memory. Hands on [`LogStorage`], which the raft node owns.

use raft::eraftpb::{ConfState, HardState};

mod codec;
mod engine;
mod memory_log;
#[cfg(feature = "raft-engine")]
mod raft_engine;
mod raft_view;
mod recent;
mod recover;
mod restart;
mod rocks_log;
mod rocks_options;
mod shared;
mod staged;
mod wal;
mod wal_room;

pub use engine::{LogEngine, LogWrite, Position, Recovered};
pub use memory_log::{Fault, MemoryLog};
#[cfg(feature = "raft-engine")]
pub use raft_engine::RaftEngineLog;
pub use recover::RecoverError;
pub use rocks_log::RocksLog;
pub use shared::RegionLog;

use crate::{engine::EngineError, raftstore::snapshot::Snapshots};
use recent::Known;
pub(super) use recent::Room;
use staged::Staged;

/// The log of one replica.
///
/// The first write or sync that fails is the last: what reached the disk is unknown from there on, and a second sync
/// may report success for bytes that the operating system has already dropped. Every later write is refused with the
/// first fault; reading goes on.
pub struct LogStorage {
    engine: RegionLog,
    conf_state: ConfState,
    hard_state: HardState,
    /// Entries up to here are forgotten.
    truncated: Position,
    /// The engine does not know `truncated` yet.
    truncate_next: bool,
    last_index: u64,
    /// Entries up to here were applied when this process started, so they are committed, whatever raft knows of it.
    applied_before: u64,
    /// The commit index that the engine keeps.
    kept_commit: u64,
    known: Known,
    snapshots: Option<Snapshots>,
    /// What is to be written next, alone or with what other regions write.
    staged: Option<Staged>,
    fault: Option<EngineError>,
}

impl LogStorage {
    /// Takes over a log, checks it as a whole against the data, and makes it durable once more: what is read here may
    /// be acknowledged, and its last part may have been read from a cache that no sync has reached.
    ///
    /// `applied_index` is the last entry that the data shows to be applied, whatever of those before it is missing.
    ///
    /// # Errors
    /// The engine's refusal, or what is inconsistent.
    pub fn open(
        engine: impl Into<RegionLog>,
        conf_state: ConfState,
        applied_index: u64,
    ) -> Result<Self, RecoverError> {
        let engine = engine.into();
        let recovered = engine.recover()?;
        let known = recover::check(&engine, &recovered, applied_index)?;
        engine.sync()?;
        let log = Self::new(engine, conf_state, recovered, known);
        Ok(Self { applied_before: applied_index, ..log })
    }

    fn new(engine: RegionLog, conf_state: ConfState, recovered: Recovered, known: Known) -> Self {
        let Recovered { hard_state, truncated, last_index } = recovered;
        Self {
            engine,
            conf_state,
            kept_commit: hard_state.commit,
            hard_state,
            truncated,
            truncate_next: false,
            last_index,
            applied_before: 0,
            known,
            snapshots: None,
            staged: None,
            fault: None,
        }
    }

    /// The place behind which the log is to be applied, to data that was synced up to `synced_index`: a log is truncated
    /// only behind synced data.
    ///
    /// Entries up to there were committed, so the commit index is raised to it; the one that is kept is older. Those that
    /// the data shows behind it were committed too, but raft reads at once whatever is committed and not applied,
    /// and may learn of these one after the other.
    pub fn apply_behind(&mut self, synced_index: u64) -> Position {
        let index = synced_index.max(self.truncated.index);
        self.hard_state.commit = self.hard_state.commit.max(index);
        Position { index, term: self.known.terms.of(index) }
    }

    /// Entries up to here are committed. It is written as [`stage`](Self::stage) says.
    pub(crate) fn committed(&mut self, index: u64) {
        self.hard_state.commit = self.hard_state.commit.max(index);
    }

    /// Forgets the entries up to `index`. The caller guarantees that they are applied and that the data is synced.
    ///
    /// They are gone for raft at once, and from the engine with the next write: it needs no write of its own, because
    /// entries that come back after a crash do no harm.
    ///
    /// # Errors
    /// The first fault of an earlier call, or an index beyond the end of the log.
    pub fn compact(&mut self, index: u64) -> Result<(), EngineError> {
        self.check_fault()?;
        if index <= self.truncated.index {
            return Ok(());
        }
        if index > self.last_index {
            let last = self.last_index;
            return Err(EngineError::new(format!(
                "the log ends at entry {last}; it cannot be truncated to {index}"
            )));
        }
        self.truncated = Position { index, term: self.known.terms.of(index) };
        self.truncate_next = true;
        self.known.forget(index);
        Ok(())
    }

    /// The index up to which entries are forgotten.
    #[must_use]
    pub const fn truncated_index(&self) -> u64 {
        self.truncated.index
    }

    /// Entries up to here are committed for certain.
    pub(crate) const fn applied_before(&self) -> u64 {
        self.applied_before
    }

    /// The least index behind which no more than `most_bytes` of entries lie.
    pub(crate) fn within(&self, most_bytes: u64) -> u64 {
        self.known.sizes.within(most_bytes)
    }

    /// The hard state as it was persisted, but for its commit index, which may be newer.
    pub(crate) const fn hard_state(&self) -> &HardState {
        &self.hard_state
    }

    /// The fault that made this log refuse writes.
    #[must_use]
    pub const fn fault(&self) -> Option<&EngineError> {
        self.fault.as_ref()
    }

    fn check_fault(&self) -> Result<(), EngineError> {
        match &self.fault {
            None => Ok(()),
            Some(first) => {
                Err(EngineError::new(format!("the raft log takes no writes since it failed: {first}")))
            }
        }
    }

    fn poison(&mut self, error: EngineError) -> EngineError {
        self.fault = Some(error.clone());
        error
    }
}

#[cfg(test)]
mod tests;
