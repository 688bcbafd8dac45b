//! A change of members makes the same membership of every replica that has applied it, whenever that was and however
//! often, and what raft knows is what is applied.

use std::collections::BTreeMap;

use raft::eraftpb::ConfState;

use super::{Acted, Invariant, Who};
use crate::apply::membership::Membership;

#[derive(Default)]
pub(super) struct SameMembers {
    /// By the index of the entry that made them, with the number of changes until then; those with which the group begins are
    /// of entry 0.
    made: BTreeMap<u64, (ConfState, u64)>,
    /// Which entry has made those in the data of each life of each replica.
    saved: BTreeMap<Who, u64>,
}

impl Invariant for SameMembers {
    fn name(&self) -> &'static str {
        "same members"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        if let Some(membership) = acted.membership {
            self.check_data(acted.who, membership)?;
        }
        self.check_raft(acted)
    }
}

impl SameMembers {
    fn check_data(&mut self, who: Who, membership: &Membership) -> Result<(), String> {
        let Membership { index, ref members, conf_ver } = *membership;
        self.saved.insert(who, index);
        let own = (sorted(members.clone()), conf_ver);
        let known = self.made.entry(index).or_insert_with(|| own.clone());
        if *known == own {
            let before = self.made.range(..index).next_back();
            return match before {
                Some((_, (_, before))) if *before > conf_ver => Err(format!(
                    "replica {} counts {conf_ver} changes at entry {index}, and there were {before} before",
                    who.replica
                )),
                _ => Ok(()),
            };
        }
        Err(format!(
            "entry {index} makes {members:?} the members at replica {}, change {conf_ver}, and made {known:?} elsewhere",
            who.replica
        ))
    }

    /// Raft is told of each change once, by apply or by a snapshot.
    fn check_raft(&self, acted: &Acted<'_>) -> Result<(), String> {
        let raft = acted.peer.raft();
        let snapshot = raft.raft_log.unstable_snapshot();
        let told = raft.raft_log.applied.max(snapshot.as_ref().map_or(0, |of| of.get_metadata().index));
        // A start tells raft of all that is in the data, and applies a part of that again.
        let is_ahead = self.saved.get(&acted.who).is_none_or(|saved| *saved > told);
        let Some((index, (made, _))) = self.made.range(..=told).next_back().filter(|_| !is_ahead) else {
            return Ok(());
        };
        let known = sorted(raft.prs().conf().to_conf_state());
        if known == *made {
            return Ok(());
        }
        Err(format!(
            "raft knows {known:?} at replica {}, and entry {index} made {made:?}; it was told up to entry {told}",
            acted.who.replica
        ))
    }
}

fn sorted(mut state: ConfState) -> ConfState {
    let ConfState { voters, learners, voters_outgoing, learners_next, .. } = &mut state;
    for ids in [voters, learners, voters_outgoing, learners_next] {
        ids.sort_unstable();
    }
    state
}
