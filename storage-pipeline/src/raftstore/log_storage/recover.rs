//! The check of a whole log before it is used: what raft and the data take for granted is proved here. Pure.

use std::fmt;

use super::{Position, Recovered, RegionLog, recent::Known};
use crate::engine::EngineError;

/// Bytes of entries that are read at a time.
const CHUNK_BYTES: u64 = 4 << 20;

/// Why a log cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoverError {
    /// The engine refused to read or to sync, or an entry is missing.
    Engine(EngineError),
    /// The log contradicts itself or the data.
    Inconsistent(String),
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => write!(f, "{error}"),
            Self::Inconsistent(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RecoverError {}

impl From<EngineError> for RecoverError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

/// Reads the log from its beginning to its end.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(
    engine: &RegionLog,
    recovered: &Recovered,
    applied_index: u64,
) -> Result<Known, RecoverError> {
    let Recovered { hard_state, truncated, last_index } = recovered;
    let inconsistent = |what: String| Err(RecoverError::Inconsistent(what));
    if (truncated.index == 0) != (truncated.term == 0) {
        return inconsistent(format!("truncated up to entry {} of term {}", truncated.index, truncated.term));
    }
    if applied_index < truncated.index {
        let index = truncated.index;
        return inconsistent(format!(
            "entries up to {index} are gone, but the data has those up to {applied_index}"
        ));
    }
    if applied_index > *last_index {
        return inconsistent(format!(
            "the log ends at entry {last_index}, but the data has those up to {applied_index}"
        ));
    }
    if hard_state.commit > *last_index {
        let commit = hard_state.commit;
        return inconsistent(format!(
            "the log ends at entry {last_index}, but those up to {commit} were committed"
        ));
    }
    let mut known = Known::after(*truncated);
    let mut end = *truncated;
    while end.index < *last_index {
        let entries = engine.entries(end.index + 1, last_index + 1, CHUNK_BYTES)?;
        if entries.is_empty() {
            return inconsistent(format!("entry {} is missing", end.index + 1));
        }
        for entry in &entries {
            end = end.followed_by(entry).map_err(RecoverError::Inconsistent)?;
        }
        known.append(entries);
    }
    if end.term > hard_state.term {
        let Position { index, term } = end;
        return inconsistent(format!(
            "entry {index} is of term {term}, but the replica is in term {}",
            hard_state.term
        ));
    }
    Ok(known)
}
