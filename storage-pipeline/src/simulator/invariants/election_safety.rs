//! Raft: at most one replica leads a term.

use std::collections::BTreeMap;

use super::{Acted, Invariant};

#[derive(Default)]
pub(super) struct ElectionSafety {
    leaders: BTreeMap<u64, u64>,
}

impl Invariant for ElectionSafety {
    fn name(&self) -> &'static str {
        "election safety"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        let Some(term) = acted.peer.led_term() else { return Ok(()) };
        let replica = acted.who.replica;
        match *self.leaders.entry(term).or_insert(replica) {
            leader if leader == replica => Ok(()),
            leader => Err(format!("replicas {leader} and {replica} both lead term {term}")),
        }
    }
}
