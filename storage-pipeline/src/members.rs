//! Who belongs to a group, what may be changed about that, and why a change is refused. Pure; hands on the membership
//! that a change would make.

use std::{collections::BTreeSet, fmt};

/// Ids of the replicas of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Those that vote.
    pub voters: BTreeSet<u64>,
    /// Those that get all entries and do not vote.
    pub learners: BTreeSet<u64>,
    /// While several replicas change at once: those that voted before, a majority of which is needed too. Else empty.
    pub outgoing: BTreeSet<u64>,
}

/// A change of one replica's place in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// This replica votes from now on. A learner is promoted; one that is new counts at once, so that it should have been a
    /// learner for long enough to have caught up.
    AddVoter(u64),
    /// This replica gets all entries and does not vote. A voter is demoted.
    AddLearner(u64),
    /// This replica does not belong to the group any more. It hears nothing of that for certain, and disturbs nobody.
    Remove(u64),
}

/// Why a change of members is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberChangeRefused {
    /// The list of changes is empty.
    Nothing,
    /// No replica has the id 0.
    ZeroId,
    /// A replica is named twice.
    NamedTwice {
        /// Its id.
        replica: u64,
    },
    /// A replica that is to be removed does not belong to the group.
    Unknown {
        /// Its id.
        replica: u64,
    },
    /// A replica has the place already that it is to get.
    AlreadyThere {
        /// Its id.
        replica: u64,
    },
    /// Nobody would be left who votes.
    NoVoterLeft,
    /// An earlier change is not applied yet, or the leader has just begun and cannot tell. Try again later.
    Pending,
    /// The store was opened without a transport, so that no other replica can be reached.
    Alone,
    /// A replica that is to lead has no vote.
    NoVoter {
        /// Its id.
        replica: u64,
    },
}

impl MemberChange {
    /// The replica that it is about.
    #[must_use]
    pub const fn replica(self) -> u64 {
        match self {
            Self::AddVoter(id) | Self::AddLearner(id) | Self::Remove(id) => id,
        }
    }
}

impl Members {
    /// The membership that comes of these changes.
    ///
    /// ```
    /// use storage_pipeline::members::{MemberChange, MemberChangeRefused, Members};
    /// let three = Members { voters: [1, 2, 3].into(), ..Members::default() };
    /// let swapped = three.changed(&[MemberChange::AddVoter(4), MemberChange::Remove(1)]).unwrap();
    /// assert_eq!(swapped.voters, [2, 3, 4].into());
    /// assert_eq!(three.changed(&[MemberChange::Remove(9)]), Err(MemberChangeRefused::Unknown { replica: 9 }));
    /// ```
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn changed(&self, changes: &[MemberChange]) -> Result<Self, MemberChangeRefused> {
        if !self.outgoing.is_empty() {
            return Err(MemberChangeRefused::Pending);
        }
        if changes.is_empty() {
            return Err(MemberChangeRefused::Nothing);
        }
        let (mut next, mut named) = (self.clone(), BTreeSet::new());
        for change in changes {
            let replica = change.replica();
            if replica == 0 {
                return Err(MemberChangeRefused::ZeroId);
            }
            if !named.insert(replica) {
                return Err(MemberChangeRefused::NamedTwice { replica });
            }
            let (was_voter, was_learner) = (next.voters.remove(&replica), next.learners.remove(&replica));
            let is_new = match change {
                MemberChange::AddVoter(_) => next.voters.insert(replica) && !was_voter,
                MemberChange::AddLearner(_) => next.learners.insert(replica) && !was_learner,
                MemberChange::Remove(_) if was_voter || was_learner => true,
                MemberChange::Remove(_) => return Err(MemberChangeRefused::Unknown { replica }),
            };
            if !is_new {
                return Err(MemberChangeRefused::AlreadyThere { replica });
            }
        }
        if next.voters.is_empty() { Err(MemberChangeRefused::NoVoterLeft) } else { Ok(next) }
    }
}

impl fmt::Display for MemberChangeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no change of members is named"),
            Self::ZeroId => f.write_str("no replica has the id 0"),
            Self::NamedTwice { replica } => write!(f, "replica {replica} is named twice"),
            Self::Unknown { replica } => write!(f, "replica {replica} does not belong to the group"),
            Self::AlreadyThere { replica } => write!(f, "replica {replica} has that place already"),
            Self::NoVoterLeft => f.write_str("no voter would be left"),
            Self::Pending => f.write_str("an earlier change of members may not be applied yet"),
            Self::Alone => f.write_str("the store has no transport to other replicas"),
            Self::NoVoter { replica } => write!(f, "replica {replica} has no vote"),
        }
    }
}

impl std::error::Error for MemberChangeRefused {}

#[cfg(test)]
mod tests {
    use super::*;
    use MemberChange::{AddLearner, AddVoter, Remove};
    use MemberChangeRefused::{AlreadyThere, NamedTwice, NoVoterLeft, Nothing, Pending, Unknown, ZeroId};

    #[test]
    fn a_change_that_makes_no_sense_is_refused_with_its_reason() {
        let members = Members { voters: [1, 2].into(), learners: [3].into(), ..Members::default() };
        for (changes, why) in [
            (&[][..], Nothing),
            (&[AddVoter(0)], ZeroId),
            (&[AddVoter(4), Remove(4)], NamedTwice { replica: 4 }),
            (&[Remove(4)], Unknown { replica: 4 }),
            (&[AddVoter(2)], AlreadyThere { replica: 2 }),
            (&[AddLearner(3)], AlreadyThere { replica: 3 }),
            (&[Remove(1), AddLearner(2)], NoVoterLeft),
        ] {
            assert_eq!(members.changed(changes), Err(why), "{changes:?}");
            assert!(!why.to_string().is_empty());
        }
        let joint = Members { outgoing: [1].into(), ..members };
        assert_eq!(joint.changed(&[AddVoter(4)]), Err(Pending));
    }

    #[test]
    fn learners_are_promoted_voters_are_demoted_and_both_are_removed() {
        let members = Members { voters: [1, 2].into(), learners: [3, 4].into(), ..Members::default() };
        let next = members.changed(&[AddVoter(3), AddLearner(1), Remove(4), AddVoter(5)]).unwrap();
        assert_eq!(next, Members { voters: [2, 3, 5].into(), learners: [1].into(), ..Members::default() });
    }
}
