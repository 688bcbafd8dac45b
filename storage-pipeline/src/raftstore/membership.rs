//! What a peer does about changes of members: it proposes them one at a time, follows those that apply has made, and gives
//! the leadership up where its replica does not vote any more. Pure.

use std::collections::VecDeque;

use callback_slot::Callback;
use raft::{
    INVALID_ID, StateRole,
    eraftpb::{ConfChangeSingle, ConfChangeType, ConfChangeV2},
};

use crate::{
    apply::membership::MembersChanged,
    error::{Cause, Error, Outcome},
    members::{MemberChange, MemberChangeRefused, Members},
    planted::planted,
    raftstore::{
        msg::ChangeMembers,
        peer::{Effects, Peer},
    },
    region::RegionEpoch,
};

/// Changes of members on their way to their caller and to raft.
#[derive(Default)]
pub(crate) struct Changes {
    /// The one that a caller waits for.
    pending: Option<PendingChange>,
    /// Those that are applied and that raft does not know yet: the first would take the vote of this replica, which leads.
    untold: VecDeque<MembersChanged>,
}

/// A change of members at its place in the log, under the leadership that proposed it.
struct PendingChange {
    index: u64,
    callback: Callback<Outcome<Members>>,
    /// The entry that has made it, or has left the joint membership that it made.
    made: Option<u64>,
}

impl Changes {
    /// Whether a caller waits for one.
    pub(super) fn is_awaited(&self) -> bool {
        self.pending.is_some()
    }
}

impl Peer {
    /// Hands a change of members to raft, or says why not.
    pub(crate) fn change_members(&mut self, wish: ChangeMembers, effects: &mut Effects) {
        let ChangeMembers { changes, callback } = wish;
        match self.propose_members(&changes) {
            Ok(index) => self.changes.pending = Some(PendingChange { index, callback, made: None }),
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
        if self.changes.is_awaited() || self.node.raft.has_pending_conf() {
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

    /// Takes the changes that apply has made on its way to where it is.
    pub(super) fn members_changed(&mut self, made: Vec<MembersChanged>, effects: &mut Effects) {
        if let Some(pending) = &mut self.changes.pending {
            let own = |made: &&MembersChanged| made.index == pending.index || pending.made.is_some();
            pending.made = made.iter().rfind(own).map(|made| made.index).or(pending.made);
        }
        self.changes.untold.extend(made);
        self.further_changes(effects);
    }

    /// Goes on with the changes on their way, now that the others may know more.
    pub(super) fn follow_changes(&mut self, effects: &mut Effects) {
        if self.changes.is_awaited() || !self.changes.untold.is_empty() {
            self.further_changes(effects);
        }
    }

    fn further_changes(&mut self, effects: &mut Effects) {
        self.tell_raft();
        // Raft forgets who knows what when it stops leading.
        self.finish_changes(effects);
        self.abdicate_without_vote();
    }

    /// Nobody here finishes what this leadership has begun.
    pub(super) fn leave_changes(&mut self, effects: &mut Effects) {
        self.tell_raft();
        if let Some(pending) = self.changes.pending.take() {
            effects.changed.push((pending.callback, Outcome::Indeterminate(Cause::LeadershipLost)));
        }
    }

    /// Tells raft what is applied: the members, and how far apply is.
    ///
    /// A change that takes the vote of a leader waits until enough of the others know that it is committed. Who does not
    /// know takes the leader for a voter, and may not win an election without it, which may be gone by then. To raft
    /// apply is behind meanwhile, so that it lets nobody change the members once more.
    fn tell_raft(&mut self) {
        // A snapshot has told raft already of what is before it, and apply comes to that only now.
        let log = &self.node.raft.raft_log;
        let snapshot = log.unstable_snapshot().as_ref().map_or(0, |snapshot| snapshot.get_metadata().index);
        let told = log.applied.max(snapshot);
        self.changes.untold.retain(|made| made.index > told || planted!(ToldBehindSnapshot));
        while self.changes.untold.front().is_some_and(|made| !self.is_too_early(made)) {
            let Some(made) = self.changes.untold.pop_front() else { break };
            let told = self.node.apply_conf_change(&made.change);
            told.expect("raft and apply make the same of a change of members");
        }
        let applied = self.changes.untold.front().map_or(self.applied, |made| made.index - 1);
        // Raft was told of a snapshot as soon as its entries were out of the log, before apply had installed it.
        if applied > self.node.raft.raft_log.applied {
            self.node.advance_apply_to(applied);
        }
    }

    fn is_too_early(&self, made: &MembersChanged) -> bool {
        let MembersChanged { index, ref members, .. } = *made;
        let id = self.node.raft.id;
        let votes = members.voters.contains(&id) || members.voters_outgoing.contains(&id);
        self.led_term().is_some() && !votes && !self.is_known(index, &members.voters)
    }

    /// Whether a majority of these voters knows that an entry is committed, and will after a power loss if it changes the
    /// members.
    fn is_known(&self, index: u64, voters: &[u64]) -> bool {
        let raft = &self.node.raft;
        let knows = |id: &&u64| match raft.prs().get(**id) {
            _ if **id == raft.id => raft.raft_log.committed >= index,
            progress => progress.is_some_and(|progress| progress.committed_index >= index),
        };
        voters.iter().filter(knows).count() > voters.len() / 2 || planted!(TellsChangeAtOnce)
    }

    /// The others would follow a leader without a vote, but its own disk counts for nothing any more.
    fn abdicate_without_vote(&mut self) {
        let raft = &mut self.node.raft;
        if raft.state != StateRole::Leader || raft.promotable() {
            return;
        }
        let (term, last) = (raft.term, raft.raft_log.last_index());
        let is_heir = |id: &u64| raft.prs().get(*id).is_some_and(|progress| progress.matched == last);
        let heir = raft.prs().conf().voters().ids().iter().find(is_heir);
        heir.into_iter().for_each(|heir| raft.send_timeout_now(heir));
        raft.become_follower(term, INVALID_ID);
    }

    /// Tells the caller what came of its change. It may switch off whoever does not belong to the group any more, so a majority
    /// of those who do has to know that.
    fn finish_changes(&mut self, effects: &mut Effects) {
        let Some(pending) = &self.changes.pending else { return };
        let members = self.node.raft.prs().conf().to_conf_state();
        let outcome = match pending.made {
            Some(index) => {
                let is_told = self.changes.untold.is_empty() && members.voters_outgoing.is_empty();
                let is_over = is_told && self.is_known(index, &members.voters);
                is_over.then(|| Outcome::Applied(Members::from(&members)))
            }
            // Raft has put an empty entry in its place.
            None => (pending.index <= self.applied)
                .then_some(Outcome::NotExecuted(Error::MemberChange(MemberChangeRefused::Pending))),
        };
        if let Some(outcome) = outcome {
            let pending = self.changes.pending.take();
            effects.changed.extend(pending.map(|pending| (pending.callback, outcome)));
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
