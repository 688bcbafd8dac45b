//! Replicas lose their votes for good, and all of them lose power once the leader says so: those who are left must do
//! without the others.

use std::{collections::BTreeSet, time::Duration};

use super::{Violation, World};
use crate::{error::Outcome, members::MemberChange, region::FIRST_REGION};

/// How long a leader may take for a change of members. It is asked again then.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long it takes until nobody leads any more who has lost touch with the others.
const ELECTION: Duration = Duration::from_millis(200);

impl World {
    /// Takes the votes of some replicas, one after the other, and then the power of all: only those start again that still
    /// vote. Each region has to find a leader among these. All are voters before.
    pub(super) fn farewell(&mut self, end: Duration) -> Result<(), Violation> {
        // What a replica would hold for ever is gone with its power.
        self.until("all replicas are at rest", end, Self::is_at_rest)?;
        let all: Vec<_> = (1..=self.nodes.len() as u64).collect();
        let first = self.random.below(all.len());
        let count = 1 + self.random.below(all.len());
        let stay: BTreeSet<_> = (0..count).map(|step| all[(first + step) % all.len()]).collect();
        for region in self.region_ids() {
            if !self.dismiss(region, &stay, end)? {
                return Ok(());
            }
        }
        (0..self.nodes.len()).try_for_each(|at| self.crash(at))?;
        stay.iter().try_for_each(|id| self.start(*id as usize - 1))?;
        let settled = self.now.get() + ELECTION;
        self.until("those who still vote lead", end, |world| {
            world.now.get() > settled && world.region_ids().all(|region| world.is_led(region))
        })?;
        let gone = all.iter().filter(|id| !stay.contains(id));
        gone.into_iter().try_for_each(|id| self.start(*id as usize - 1))
    }

    /// Makes all but these replicas of a region learners, or removes them. Says whether a leader has told that it is done.
    fn dismiss(&mut self, region: u64, stay: &BTreeSet<u64>, end: Duration) -> Result<bool, Violation> {
        let place = (region - FIRST_REGION) as usize;
        loop {
            let leader = self.leading_life(region).map(|life| life.peer(region).raft());
            let voters = leader.map(|raft| raft.prs().conf().to_conf_state().voters).unwrap_or_default();
            let leaving: Vec<_> = voters.into_iter().filter(|id| !stay.contains(id)).collect();
            let told = &self.members_told[place];
            let is_told = matches!(told, Some(Outcome::Applied(members)) if members.voters.is_subset(stay));
            if is_told || (leader.is_some() && leaving.is_empty()) {
                // Without an answer nothing was promised.
                return Ok(is_told || stay.len() == self.nodes.len());
            }
            self.members_told[place] = None;
            if !leaving.is_empty() {
                let leaves = *self.random.pick(&leaving);
                let kind = *self.random.pick(&[MemberChange::AddLearner, MemberChange::Remove]);
                self.change_members(region, &[kind(leaves)]);
            }
            let pause = self.now.get() + PATIENCE;
            self.until("replicas lose their votes", end, |world| {
                let is_applied = |told: &Outcome<_>| told.is_applied();
                world.members_told[place].as_ref().is_some_and(is_applied) || world.now.get() > pause
            })?;
        }
    }

    /// Whether somebody leads a region who has committed an entry of its own term.
    fn is_led(&self, region: u64) -> bool {
        self.leading_life(region).is_some_and(|life| life.peer(region).raft().commit_to_current_term())
    }

    pub(super) fn region_ids(&self) -> impl Iterator<Item = u64> + use<> {
        FIRST_REGION..FIRST_REGION + self.regions.all().len() as u64
    }
}
