//! A log in memory, for tests and simulators: it knows what is durable and what is only written, loses the latter on
//! demand, and fails on demand.

use std::sync::Arc;

use imbl::OrdMap;
use parking_lot::Mutex;
use raft::eraftpb::{Entry, HardState};

use super::{LogEngine, LogWrite, Position, Recovered, recent::Room};
use crate::engine::EngineError;

/// A log in memory. Its clones share it, so that a test keeps a hand on what a `LogStorage` owns, and can open it
/// again.
#[derive(Clone, Default)]
pub struct MemoryLog {
    state: Arc<Mutex<State>>,
}

/// What is to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A write: nothing of it is kept.
    Write,
    /// A sync: what was written can be read, and a power loss takes it.
    Sync,
}

#[derive(Default)]
struct State {
    written: Regions,
    synced: Regions,
    /// What it was after each write since the last sync.
    unsynced: Vec<Regions>,
    fails: Option<Fault>,
    syncs: u64,
}

/// The log of each region. Cloning costs next to nothing, so that every sync can keep a copy.
type Regions = OrdMap<u64, Contents>;

#[derive(Clone, Default)]
struct Contents {
    entries: OrdMap<u64, Arc<Entry>>,
    hard_state: HardState,
    truncated: Position,
}

impl Contents {
    fn take(&mut self, write: &LogWrite<'_>) {
        let Self { entries, hard_state, truncated } = self;
        if write.restart {
            entries.clear();
        }
        if let Some(first) = write.entries.first() {
            // One at a time: there are few or none, and splitting the map would copy all of it.
            while let Some(&(last, _)) = entries.get_max()
                && last >= first.index
            {
                entries.remove(&last);
            }
            entries.extend(write.entries.iter().map(|entry| (entry.index, Arc::new(entry.clone()))));
        }
        if let Some(new) = write.hard_state {
            hard_state.clone_from(new);
        }
        if let Some(new) = write.truncated {
            while let Some(&(oldest, _)) = entries.get_min()
                && oldest <= new.index
            {
                entries.remove(&oldest);
            }
            *truncated = new;
        }
    }
}

impl MemoryLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes everything that was not synced. Whoever uses the log must open it anew.
    pub fn lose_power(&self) {
        self.lose_power_after(0);
    }

    /// Takes the writes that were not synced but for the first `kept` of them. Whoever uses the log must open it
    /// anew.
    pub fn lose_power_after(&self, kept: usize) {
        let mut state = self.state.lock();
        let left = kept.checked_sub(1).and_then(|last| state.unsynced.get(last)).unwrap_or(&state.synced);
        let left = left.clone();
        state.written = left.clone();
        state.synced = left;
        state.unsynced.clear();
    }

    /// How many writes were not synced.
    #[must_use]
    pub fn unsynced(&self) -> usize {
        self.state.lock().unsynced.len()
    }

    /// Makes the next write, or the next sync, fail; or neither any more.
    pub fn fail_next(&self, fault: impl Into<Option<Fault>>) {
        self.state.lock().fails = fault.into();
    }

    /// How many syncs succeeded.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }
}

impl State {
    fn fail(&mut self, fault: Fault) -> Result<(), EngineError> {
        match self.fails.take_if(|planned| *planned == fault) {
            None => Ok(()),
            Some(Fault::Write) => Err(EngineError::new("injected failure of a write")),
            Some(Fault::Sync) => Err(EngineError::new("injected failure of a sync")),
        }
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        self.fail(Fault::Sync)?;
        self.synced = self.written.clone();
        self.unsynced.clear();
        self.syncs += 1;
        Ok(())
    }
}

impl LogEngine for MemoryLog {
    fn recover(&mut self, region: u64) -> Result<Recovered, EngineError> {
        let stored = self.state.lock().written.get(&region).cloned();
        let Contents { entries, hard_state, truncated } = stored.unwrap_or_default();
        let last_index = entries.get_max().map_or(truncated.index, |(index, _)| *index);
        Ok(Recovered { hard_state, truncated, last_index })
    }

    fn write(&mut self, writes: &[LogWrite<'_>]) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        state.fail(Fault::Write)?;
        for write in writes {
            state.written.entry(write.region).or_default().take(write);
        }
        let image = state.written.clone();
        state.unsynced.push(image);
        if writes.iter().any(|write| write.sync) { state.sync() } else { Ok(()) }
    }

    fn entries(&self, region: u64, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, EngineError> {
        let state = self.state.lock();
        let mut room = Room::new(max_bytes);
        let mut found = Vec::new();
        for index in low..high {
            let entry = state.written.get(&region).and_then(|contents| contents.entries.get(&index));
            let entry = entry.ok_or_else(|| EngineError::new(format!("entry {index} is missing")))?;
            if !room.take(entry) {
                break;
            }
            found.push(Entry::clone(entry));
        }
        Ok(found)
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        self.state.lock().sync()
    }
}
