//! A change of members makes the same membership of every replica that has applied it, whenever that was and however often.

use std::collections::BTreeMap;

use raft::eraftpb::ConfState;

use super::{Acted, Invariant};

#[derive(Default)]
pub(super) struct SameMembers {
    /// By the index of the entry that made them; those with which the group begins are of entry 0.
    made: BTreeMap<u64, ConfState>,
}

impl Invariant for SameMembers {
    fn name(&self) -> &'static str {
        "same members"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        let Some(membership) = acted.membership else { return Ok(()) };
        let index = membership.index;
        let known = self.made.entry(index).or_insert_with(|| membership.members.clone());
        if *known == membership.members {
            return Ok(());
        }
        Err(format!(
            "entry {index} makes {:?} the members at replica {}, and made {known:?} elsewhere",
            membership.members, acted.who.replica
        ))
    }
}
