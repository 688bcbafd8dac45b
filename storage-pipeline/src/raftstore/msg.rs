//! What the raftstore is sent.

use callback_slot::Callback;
use raft::eraftpb::Message;

use crate::{
    apply::membership::MembersChanged,
    command::Response,
    error::Outcome,
    members::{MemberChange, Members},
    scheduler::task::{Job, Task},
};

/// A change that is to be replicated, with the task whose caller waits for it.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) task: Task,
    /// The term whose leader took the snapshot that the change is derived from, where it is derived from one.
    pub(crate) term: Option<u64>,
    /// The encoded changes.
    pub(crate) data: Vec<u8>,
    /// What the caller is told once they are applied.
    pub(crate) response: Response,
}

/// A message to the raftstore about one region.
#[derive(Debug)]
pub(crate) struct ToRegion {
    pub(crate) region: u64,
    pub(crate) message: StoreMsg,
}

/// What a region is told.
#[derive(Debug)]
pub(crate) enum StoreMsg {
    /// Replicate a change.
    Propose(Proposal),
    /// Confirm the leadership and hand the job to the local reader.
    Read(Job),
    /// What another replica's raft has to say.
    Raft(Box<Message>),
    /// A snapshot was sent to this replica, which took all of it or did not.
    SnapshotSent { to: u64, taken: bool },
    /// Ask this voter to take over the leadership.
    TransferLeader(u64),
    /// Change the members of the group.
    ChangeMembers(Box<ChangeMembers>),
    /// Apply got this far.
    Applied(ApplyRes),
    /// The log may be truncated: the data up to this index is synced.
    Truncate(u64),
}

/// How far apply got: the way back from the apply pool to its peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApplyRes {
    /// Index of the last applied entry.
    pub(crate) index: u64,
    /// Term of that entry.
    pub(crate) term: u64,
    /// Bytes of the entries that were applied since the last report.
    pub(crate) bytes: usize,
    /// The changes of members among them.
    pub(crate) changes: Vec<MembersChanged>,
    /// How many there were since the region began.
    pub(crate) conf_ver: u64,
}

/// A wish to change the members of the group.
#[derive(Debug)]
pub(crate) struct ChangeMembers {
    pub(crate) changes: Vec<MemberChange>,
    /// Hears what came of it. If it is dropped, nobody knows.
    pub(crate) callback: Callback<Outcome<Members>>,
}
