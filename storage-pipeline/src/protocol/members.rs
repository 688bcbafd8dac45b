//! Members of a group and changes of them, on the wire and back.

use super::{
    Malformed,
    wire::{self, member_change::Change as Of},
};
use crate::members::{MemberChange, Members};

impl From<MemberChange> for wire::MemberChange {
    fn from(change: MemberChange) -> Self {
        Self {
            change: Some(match change {
                MemberChange::AddVoter(id) => Of::AddVoter(id),
                MemberChange::AddLearner(id) => Of::AddLearner(id),
                MemberChange::Remove(id) => Of::Remove(id),
            }),
        }
    }
}

impl TryFrom<wire::MemberChange> for MemberChange {
    type Error = Malformed;

    fn try_from(change: wire::MemberChange) -> Result<Self, Malformed> {
        Ok(match change.change.ok_or_else(|| Malformed::unset("changes.change"))? {
            Of::AddVoter(id) => Self::AddVoter(id),
            Of::AddLearner(id) => Self::AddLearner(id),
            Of::Remove(id) => Self::Remove(id),
        })
    }
}

/// A region of which nothing is said but its members.
impl From<Members> for wire::Region {
    fn from(Members { voters, learners, outgoing }: Members) -> Self {
        let [voters, learners, outgoing] = [voters, learners, outgoing].map(Vec::from_iter);
        Self { voters, learners, outgoing, ..Self::default() }
    }
}

impl From<&wire::Region> for Members {
    fn from(region: &wire::Region) -> Self {
        let [voters, learners, outgoing] =
            [&region.voters, &region.learners, &region.outgoing].map(|ids| ids.iter().copied().collect());
        Self { voters, learners, outgoing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_members_come_back_as_they_were_and_a_change_of_nothing_is_malformed() {
        for change in [MemberChange::AddVoter(1), MemberChange::AddLearner(u64::MAX), MemberChange::Remove(3)]
        {
            assert_eq!(MemberChange::try_from(wire::MemberChange::from(change)), Ok(change));
        }
        let malformed = MemberChange::try_from(wire::MemberChange::default()).unwrap_err();
        assert_eq!(malformed.field, "changes.change");
        let members = Members { voters: [1, 2].into(), learners: [4].into(), outgoing: [1, 3].into() };
        assert_eq!(Members::from(&wire::Region::from(members.clone())), members);
    }
}
