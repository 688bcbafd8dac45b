//! No two commands of one replica hold one latch, and one that was handed to raft gives its latches away only once it
//! is settled: applied, or the leadership of its term lost.

use std::collections::BTreeMap;

use super::{Acted, Deed, Invariant, Who};
use crate::observe::Moment;

#[derive(Default)]
pub(super) struct SettledBeforeRelease {
    /// Who holds a latch of a replica.
    held: BTreeMap<(Who, u64), u64>,
    /// Index and term of what was handed to raft.
    proposed: BTreeMap<u64, (u64, u64)>,
}

impl Invariant for SettledBeforeRelease {
    fn name(&self) -> &'static str {
        "settled before release"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        for deed in acted.deeds {
            let Deed::Moment(moment, Some(operation)) = deed else { continue };
            let hashes = &acted.operations[operation].hashes;
            match *moment {
                Moment::LatchesHeld { .. } => {
                    for hash in hashes {
                        if let Some(holder) = self.held.insert((acted.who, *hash), *operation) {
                            return Err(format!("command {operation} has the latch of command {holder}"));
                        }
                    }
                }
                Moment::Proposed { index, term, .. } => {
                    self.proposed.insert(*operation, (index, term));
                }
                Moment::Released { .. } => {
                    for hash in hashes {
                        self.held.remove(&(acted.who, *hash));
                    }
                    if let Some((index, term)) = self.proposed.remove(operation)
                        && acted.applied < index
                        && acted.peer.led_term() == Some(term)
                    {
                        return Err(format!(
                            "command {operation}, entry {index} of term {term}, is released, and {} is applied",
                            acted.applied
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
