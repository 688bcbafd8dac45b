//! Raft: entries of one index and term are the same in every log, and so is what stands before them.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use raft::eraftpb::Entry;

use super::{Acted, Invariant};

#[derive(Default)]
pub(super) struct LogMatching {
    /// By index and term: what the entry holds, and the term of the one before it.
    entries: BTreeMap<(u64, u64), (u64, u64)>,
}

/// What an entry holds.
pub(super) fn digest(entry: &Entry) -> u64 {
    let mut hasher = DefaultHasher::new();
    (entry.term, entry.entry_type, &entry.data).hash(&mut hasher);
    hasher.finish()
}

impl Invariant for LogMatching {
    fn name(&self) -> &'static str {
        "log matching"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        for entry in acted.new_entries {
            // The first entry after a truncation stands behind one that the log no longer has.
            let Some(before) = acted.log.term(entry.index - 1) else { continue };
            let holds = (digest(entry), before);
            let known = *self.entries.entry((entry.index, entry.term)).or_insert(holds);
            if known != holds {
                return Err(format!(
                    "entry {} of term {} is not the same in the log of replica {}",
                    entry.index, entry.term, acted.who.replica
                ));
            }
        }
        Ok(())
    }
}
