//! Raft: a leader never overwrites or deletes entries of its log; it only appends.

use std::collections::BTreeMap;

use super::{Acted, Invariant, Who};

#[derive(Default)]
pub(super) struct LeaderAppendOnly {
    /// The term that each leads, and the last entry of its log when it acted last.
    leaders: BTreeMap<Who, (u64, u64)>,
}

impl Invariant for LeaderAppendOnly {
    fn name(&self) -> &'static str {
        "leader append-only"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        let Some(term) = acted.peer.led_term() else {
            self.leaders.remove(&acted.who);
            return Ok(());
        };
        let last = acted.log.last();
        let before = self.leaders.insert(acted.who, (term, last));
        match before {
            Some((led, before)) if led == term && acted.unchanged_below <= before => Err(format!(
                "replica {} leads term {term} and has changed entry {} of {before}",
                acted.who.replica, acted.unchanged_below
            )),
            _ => Ok(()),
        }
    }
}
