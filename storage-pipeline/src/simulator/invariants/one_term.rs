//! What was decided on a snapshot is proposed in the term in which the snapshot was taken: nobody else led meanwhile.

use std::collections::BTreeMap;

use super::{Acted, Deed, Invariant, Who};
use crate::observe::Moment;

#[derive(Default)]
pub(super) struct OneTerm {
    /// The term of the replica when it took the snapshot of a command.
    taken: BTreeMap<(Who, u64), u64>,
}

impl Invariant for OneTerm {
    fn name(&self) -> &'static str {
        "one term from snapshot to proposal"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        let now = acted.peer.raft().term;
        for deed in acted.deeds {
            match *deed {
                Deed::Moment(Moment::SnapshotTaken { cid, .. }, _) => {
                    self.taken.insert((acted.who, cid), now);
                }
                Deed::Moment(Moment::Proposed { cid, term, index, .. }, command) => {
                    if let Some(taken) = self.taken.get(&(acted.who, cid)).filter(|taken| **taken != term) {
                        return Err(format!(
                            "command {command:?} is entry {index} of term {term}, on a snapshot of term {taken}"
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
