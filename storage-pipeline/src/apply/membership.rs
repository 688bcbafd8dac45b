//! What a committed change of members makes of the membership. Every replica computes it for itself, from the same
//! entries. Pure.

use std::collections::BTreeSet;

use protobuf::Message as _;
use raft::eraftpb::{ConfChangeType, ConfChangeV2, ConfState, Entry, EntryType};

use crate::{error::Error, members::Members, planted::planted, region::RegionEpoch};

/// A membership, the entry that made it, and how many have come before it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Membership {
    pub(crate) members: ConfState,
    pub(crate) index: u64,
    pub(crate) conf_ver: u64,
}

/// A committed change of members.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MembersChanged {
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) change: ConfChangeV2,
    /// The members that it has made.
    pub(crate) members: ConfState,
}

impl Default for Membership {
    /// That of a group which nobody has begun.
    fn default() -> Self {
        Self { members: ConfState::default(), index: 0, conf_ver: RegionEpoch::default().conf_ver }
    }
}

impl Membership {
    /// The one with which a group begins.
    pub(crate) fn first(members: ConfState) -> Self {
        Self { members, ..Self::default() }
    }

    /// Takes an entry that changes the members. Nothing comes of one that has done so before: the log is applied again from
    /// where the data was synced, and the membership may be of a later entry.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an entry that cannot be decoded, or that contradicts the membership.
    pub(crate) fn apply(&mut self, entry: &Entry) -> Result<Option<MembersChanged>, Error> {
        let Entry { index, term, .. } = *entry;
        if index <= self.index && !planted!(ChangesAgain) {
            return Ok(None);
        }
        let corrupt =
            |what: &str| Error::Corrupt(format!("entry {index}, a change of members: {what}").into());
        if entry.get_entry_type() != EntryType::EntryConfChangeV2 {
            return Err(corrupt("its form is not used here"));
        }
        let mut change = ConfChangeV2::default();
        change.merge_from_bytes(&entry.data).map_err(|_| corrupt("it cannot be decoded"))?;
        self.members = next(&self.members, &change).map_err(corrupt)?;
        self.index = index;
        self.conf_ver += 1;
        Ok(Some(MembersChanged { index, term, change, members: self.members.clone() }))
    }
}

/// The membership after a change, by the rules of raft.
fn next(members: &ConfState, change: &ConfChangeV2) -> Result<ConfState, &'static str> {
    let [mut voters, mut learners, mut outgoing, mut learners_next] =
        [&members.voters, &members.learners, &members.voters_outgoing, &members.learners_next]
            .map(|ids| ids.iter().copied().collect::<BTreeSet<_>>());
    let mut auto_leave = false;
    if change.leave_joint() {
        if outgoing.is_empty() {
            return Err("there is no joint membership to leave");
        }
        learners.append(&mut learners_next);
        outgoing.clear();
    } else {
        if !outgoing.is_empty() {
            return Err("the membership is joint");
        }
        if let Some(leaves) = change.enter_joint() {
            (outgoing, auto_leave) = (voters.clone(), leaves);
        }
        for single in &change.changes {
            let id = single.node_id;
            let kind = single.get_change_type();
            if id == 0 || (kind == ConfChangeType::AddLearnerNode && learners.contains(&id)) {
                continue;
            }
            for ids in [&mut voters, &mut learners, &mut learners_next] {
                ids.remove(&id);
            }
            match kind {
                ConfChangeType::AddNode => voters.insert(id),
                ConfChangeType::AddLearnerNode if outgoing.contains(&id) => learners_next.insert(id),
                ConfChangeType::AddLearnerNode => learners.insert(id),
                ConfChangeType::RemoveNode => true,
            };
        }
    }
    if voters.is_empty() {
        return Err("no voter is left");
    }
    let [voters, learners, voters_outgoing, learners_next] =
        [voters, learners, outgoing, learners_next].map(|ids| ids.into_iter().collect::<Vec<_>>());
    Ok(ConfState { voters, learners, voters_outgoing, learners_next, auto_leave })
}

impl From<&ConfState> for Members {
    fn from(state: &ConfState) -> Self {
        let set = |ids: &[u64]| ids.iter().copied().collect();
        let ConfState { voters, learners, voters_outgoing, .. } = state;
        Self { voters: set(voters), learners: set(learners), outgoing: set(voters_outgoing) }
    }
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
