//! What must always hold, one invariant a file. Most are checked whenever a replica has acted; linearizability, snapshot
//! isolation and agreement are checked at the end, on what clients wrote down and on what the replicas have.

use std::collections::BTreeMap;

use raft::eraftpb::Entry;

use crate::{apply::membership::Membership, observe::Moment, raftstore::peer::Peer, scheduler::task::Reply};

mod agreement;
mod election_safety;
mod exactly_once;
mod leader_append_only;
mod leader_completeness;
pub(super) mod linearizability;
mod lease_covers;
mod lease_excludes;
mod log_matching;
mod monotonic;
mod one_term;
mod order_in_apply;
mod promise;
mod same_members;
mod settled_before_release;
pub(super) mod snapshot_isolation;
mod state_machine_safety;

pub(super) use agreement::check as check_agreement;

/// A command that a client submitted.
pub(super) struct Operation {
    /// The region that it is for.
    pub(super) region: u64,
    pub(super) hashes: Box<[u64]>,
    pub(super) replies: u32,
    /// Whether the replica died with it.
    pub(super) lost: bool,
}

/// Which life of which replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    pub(super) replica: u64,
    pub(super) life: u64,
}

/// A thing that a replica did, with commands by their numbers in the simulation.
pub(super) enum Deed {
    /// A moment of this command, or of none.
    Moment(Moment, Option<u64>),
    Told {
        operation: u64,
        reply: Reply,
    },
}

/// What a region of a replica looks like after that has acted. Each region has invariants of its own, so that none of them
/// needs to know of the others.
pub(super) struct Acted<'a> {
    pub(super) who: Who,
    pub(super) deeds: &'a [Deed],
    pub(super) operations: &'a BTreeMap<u64, Operation>,
    pub(super) peer: &'a Peer,
    pub(super) applied: u64,
    /// The membership in its data, where it has applied something.
    pub(super) membership: Option<&'a Membership>,
    /// Entries of its log that are new since it acted last, and the index below which nothing of its log has changed.
    pub(super) new_entries: &'a [Entry],
    pub(super) unchanged_below: u64,
    /// Index and term of each entry of its log, from `first` on.
    pub(super) log: &'a Log,
    /// What all replicas believe of themselves now.
    pub(super) claims: &'a [Claim],
}

/// What a replica believes of itself.
pub(super) struct Claim {
    pub(super) replica: u64,
    /// The term that it leads.
    pub(super) leads: Option<u64>,
    /// The term under whose lease it would read now.
    pub(super) reads: Option<u64>,
    pub(super) applied: u64,
}

/// The terms of a log's entries.
#[derive(Clone, Default)]
pub(super) struct Log {
    /// Index of the first one.
    pub(super) first: u64,
    pub(super) terms: Vec<u64>,
}

impl Log {
    pub(super) fn term(&self, index: u64) -> Option<u64> {
        let at = index.checked_sub(self.first)?;
        self.terms.get(usize::try_from(at).ok()?).copied()
    }

    pub(super) fn last(&self) -> u64 {
        self.first + self.terms.len() as u64 - 1
    }
}

/// Something that holds whenever a replica has acted.
pub(super) trait Invariant {
    /// Its name, for the report of a violation.
    fn name(&self) -> &'static str;

    /// # Errors
    /// What contradicts it.
    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String>;
}

/// What commands and their callers see. It holds to the last breath of a replica.
pub(super) fn of_commands() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::<exactly_once::ExactlyOnce>::default(),
        Box::<promise::Promise>::default(),
        Box::<settled_before_release::SettledBeforeRelease>::default(),
        Box::<order_in_apply::OrderInApply>::default(),
        Box::<one_term::OneTerm>::default(),
        Box::<same_members::SameMembers>::default(),
        Box::<lease_excludes::LeaseExcludes>::default(),
        Box::<lease_covers::LeaseCovers>::default(),
    ]
}

/// What raft promises. It says nothing of a replica whose log has failed, which is not used any more.
pub(super) fn of_raft() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::<election_safety::ElectionSafety>::default(),
        Box::<leader_append_only::LeaderAppendOnly>::default(),
        Box::<log_matching::LogMatching>::default(),
        Box::<leader_completeness::LeaderCompleteness>::default(),
        Box::<state_machine_safety::StateMachineSafety>::default(),
        Box::<monotonic::Monotonic>::default(),
    ]
}
