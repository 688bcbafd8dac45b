//! Raft: whoever leads a term has every entry that was committed in an earlier one.

use std::collections::BTreeMap;

use super::{Acted, Invariant};

#[derive(Default)]
pub(super) struct LeaderCompleteness {
    /// Terms of the committed entries, by index, and the term in which each was first seen to be committed.
    committed: BTreeMap<u64, (u64, u64)>,
    /// Terms whose leader was checked.
    checked: BTreeMap<u64, u64>,
}

impl Invariant for LeaderCompleteness {
    fn name(&self) -> &'static str {
        "leader completeness"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        let raft = acted.peer.raft();
        if let Some(term) = acted.peer.led_term()
            && self.checked.insert(term, acted.who.replica).is_none()
        {
            for (index, (of, seen)) in self.committed.range(acted.log.first..) {
                if *seen < term && acted.log.term(*index) != Some(*of) {
                    return Err(format!(
                        "replica {} leads term {term} without entry {index} of term {of}, committed in term {seen}",
                        acted.who.replica
                    ));
                }
            }
        }
        let known = self.committed.last_key_value().map_or(0, |(index, _)| *index);
        for index in known + 1..=raft.raft_log.committed {
            if let Some(term) = acted.log.term(index) {
                self.committed.insert(index, (term, raft.term));
            }
        }
        Ok(())
    }
}
