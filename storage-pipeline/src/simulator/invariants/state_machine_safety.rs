//! Raft: no two replicas apply different entries at one index, and none applies what is not committed.

use std::collections::BTreeMap;

use super::{Acted, Invariant};

#[derive(Default)]
pub(super) struct StateMachineSafety {
    /// The term of the entry that was applied, by index.
    applied: BTreeMap<u64, u64>,
    /// Up to where each replica was looked at.
    seen: BTreeMap<u64, u64>,
}

impl Invariant for StateMachineSafety {
    fn name(&self) -> &'static str {
        "state machine safety"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        let replica = acted.who.replica;
        let committed = acted.peer.raft().raft_log.committed;
        if acted.applied > committed {
            return Err(format!("replica {replica} has applied {} of {committed} committed", acted.applied));
        }
        let seen = self.seen.entry(replica).or_default();
        for index in *seen + 1..=acted.applied {
            let Some(term) = acted.log.term(index) else { continue };
            let known = *self.applied.entry(index).or_insert(term);
            if known != term {
                return Err(format!(
                    "replica {replica} applies entry {index} of term {term}, others of {known}"
                ));
            }
        }
        *seen = (*seen).max(acted.applied);
        Ok(())
    }
}
