//! What a peer does about changes of members: it proposes them one at a time, follows those that apply has made, and gives
//! the leadership up where its replica does not vote any more. Pure.

use callback_slot::Callback;
use raft::{
    INVALID_ID,
    eraftpb::{ConfChangeSingle, ConfChangeType, ConfChangeV2},
};

use crate::{
    error::{Error, Outcome},
    members::{MemberChange, MemberChangeRefused, Members},
    planted::planted,
    raftstore::{
        msg::{ApplyRes, ChangeMembers},
        peer::{Effects, Peer},
    },
    region::RegionEpoch,
};

/// A change of members at its place in the log, under the leadership that proposed it.
pub(crate) struct PendingChange {
    index: u64,
    pub(super) callback: Callback<Outcome<Members>>,
    /// It is applied, and the joint membership that it made is not left yet.
    is_joint: bool,
}

impl Peer {
    /// Hands a change of members to raft, or says why not.
    pub(crate) fn change_members(&mut self, wish: ChangeMembers, effects: &mut Effects) {
        let ChangeMembers { changes, callback } = wish;
        match self.propose_members(&changes) {
            Ok(index) => self.changing = Some(PendingChange { index, callback, is_joint: false }),
            Err(error) => effects.changed.push((callback, Outcome::NotExecuted(error))),
        }
    }

    /// Says where the change stands in the log.
    fn propose_members(&mut self, changes: &[MemberChange]) -> Result<u64, Error> {
        if !self.is_leading() {
            return Err(self.not_leader());
        }
        self.members().changed(changes).map_err(Error::MemberChange)?;
        // Raft lets a new leader wait until it has applied all that earlier ones may have changed.
        if self.changing.is_some() || self.node.raft.has_pending_conf() {
            return Err(Error::MemberChange(MemberChangeRefused::Pending));
        }
        let last = self.node.raft.raft_log.last_index();
        let proposed = self.node.propose_conf_change(Vec::new(), as_raft_has_it(changes));
        if proposed.is_err() || self.node.raft.raft_log.last_index() != last + 1 {
            return Err(self.not_leader());
        }
        Ok(last + 1)
    }

    /// Refuses a proposal that names another epoch than the one in which its entry is going to be applied. The log decides
    /// that: it is the applied one where no change of members stands before the entry and waits for apply. So apply has
    /// nothing to decide, and every replica does the same with the entry whenever it comes to it. It could not even: a
    /// start that applies the log again may have the members of a later entry than the one that it comes to. Raft takes a
    /// change to be pending in a new leader until that has applied all of its log.
    pub(super) fn check_epoch(&self, named: Option<RegionEpoch>) -> Result<(), Error> {
        if named.is_some() && self.node.raft.has_pending_conf() {
            return Err(Error::EpochPending { region: self.region() });
        }
        self.current.check(named)
    }

    /// The members, as far as raft was told.
    fn members(&self) -> Members {
        Members::from(&self.node.raft.prs().conf().to_conf_state())
    }

    /// Tells raft of the changes that apply has made, and the caller of its own.
    pub(super) fn members_changed(&mut self, res: &ApplyRes, effects: &mut Effects) {
        // A snapshot has told raft already of what is before it, and apply comes to that only now.
        let log = &self.node.raft.raft_log;
        let snapshot = log.unstable_snapshot().as_ref().map_or(0, |snapshot| snapshot.get_metadata().index);
        let told = log.applied.max(snapshot);
        for made in &res.changes {
            if made.index > told || planted!(ToldBehindSnapshot) {
                let told = self.node.apply_conf_change(&made.change);
                told.expect("raft and apply make the same of a change of members");
            }
        }
        if let Some(pending) = self.changing.take_if(|pending| pending.index <= res.index) {
            let members = self.members();
            let was_made = pending.is_joint || res.changes.iter().any(|made| made.index == pending.index);
            if was_made && !members.outgoing.is_empty() {
                self.changing = Some(PendingChange { is_joint: true, ..pending });
            } else if was_made {
                effects.changed.push((pending.callback, Outcome::Applied(members)));
            } else {
                // Raft has put an empty entry in its place.
                let refused = Error::MemberChange(MemberChangeRefused::Pending);
                effects.changed.push((pending.callback, Outcome::NotExecuted(refused)));
            }
        }
        let raft = &mut self.node.raft;
        if !res.changes.is_empty() && self.leads.is_some() && !raft.promotable() {
            // The others would follow it, but its own disk counts for nothing any more.
            let term = raft.term;
            raft.become_follower(term, INVALID_ID);
        }
    }
}

/// One change is made at once; several are made through a joint membership, which raft leaves by itself.
fn as_raft_has_it(changes: &[MemberChange]) -> ConfChangeV2 {
    let single = |change: &MemberChange| {
        let kind = match change {
            MemberChange::AddVoter(_) => ConfChangeType::AddNode,
            MemberChange::AddLearner(_) => ConfChangeType::AddLearnerNode,
            MemberChange::Remove(_) => ConfChangeType::RemoveNode,
        };
        ConfChangeSingle { change_type: kind as i32, node_id: change.replica() }
    };
    ConfChangeV2 { changes: changes.iter().map(single).collect(), ..ConfChangeV2::default() }
}
