//! What keeps the raft logs of a store, one for each of its regions: a trait, so that the log on RocksDB, the one in memory
//! and another engine can take each other's place.

use raft::eraftpb::{Entry, HardState};

use crate::{engine::EngineError, region::FIRST_REGION};

/// A place in the log. Index 0 in term 0 is before the first entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The index of an entry.
    pub index: u64,
    /// Its term.
    pub term: u64,
}

impl Position {
    /// The place of `entry`, if it may stand right after this one.
    pub(super) fn followed_by(self, entry: &Entry) -> Result<Self, String> {
        let next = Self { index: entry.index, term: entry.term };
        if next.index != self.index + 1 {
            return Err(format!("entry {} is followed by entry {}", self.index, next.index));
        }
        if next.term < self.term {
            let (before, after) = (self.term, next.term);
            return Err(format!("entry {} of term {before} is followed by one of term {after}", self.index));
        }
        Ok(next)
    }
}

/// What is written to the log of one region.
#[derive(Clone, Copy, Debug)]
pub struct LogWrite<'a> {
    /// Id of the region.
    pub region: u64,
    /// Entries with ascending indices and no gap. They replace everything at and after the first one's index.
    pub entries: &'a [Entry],
    /// The hard state, where it changed.
    pub hard_state: Option<&'a HardState>,
    /// Entries up to this one are forgotten.
    pub truncated: Option<Position>,
    /// All entries that were there before are forgotten, beyond `truncated` too: a snapshot takes their place, and the log
    /// begins anew behind it. Comes with `truncated` and `hard_state`.
    pub restart: bool,
    /// Makes this write, and everything before it, durable.
    pub sync: bool,
}

impl Default for LogWrite<'_> {
    /// Nothing, to the log of the first region.
    fn default() -> Self {
        Self {
            region: FIRST_REGION,
            entries: &[],
            hard_state: None,
            truncated: None,
            restart: false,
            sync: false,
        }
    }
}

/// What an engine holds of one region when it is opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovered {
    /// The hard state; its default where none was ever written.
    pub hard_state: HardState,
    /// Entries up to this one were forgotten.
    pub truncated: Position,
    /// Index of the last entry, or of `truncated` where there is none.
    pub last_index: u64,
}

/// An engine that keeps raft logs. It has one user, which calls nothing but `entries` after a failure.
pub trait LogEngine: Send + 'static {
    /// What it holds of a region: nothing but defaults where that was never written to. Asked once for each, before
    /// anything else is asked of that region.
    ///
    /// # Errors
    /// The engine's refusal, or what cannot be decoded.
    fn recover(&mut self, region: u64) -> Result<Recovered, EngineError>;

    /// Writes to several regions at once, each named once: all of it is there afterwards, or nothing. Where one of them
    /// asks for a sync, one sync makes all of it durable.
    ///
    /// # Errors
    /// The engine's refusal. What was written, and what is durable, is then unknown.
    fn write(&mut self, writes: &[LogWrite<'_>]) -> Result<(), EngineError>;

    /// The entries of a region from `low` up to but not including `high`, as many as fit into `max_bytes`, at least one.
    ///
    /// # Errors
    /// The engine's refusal; one of the entries is missing or cannot be decoded.
    fn entries(&self, region: u64, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, EngineError>;

    /// Makes everything durable that was recovered or written before.
    ///
    /// # Errors
    /// The engine's refusal. It is never retried.
    fn sync(&mut self) -> Result<(), EngineError>;
}
