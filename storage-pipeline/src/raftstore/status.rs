//! What a replica knows of its group, for everybody outside of its raftstore. Hands on [`ReplicaStatus`].

use std::sync::Arc;

use crate::primitive::Mutex;

/// What a replica does in its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It follows a leader, or knows none.
    #[default]
    Follower,
    /// It asks for votes.
    Candidate,
    /// It leads.
    Leader,
}

/// How a replica sees its group. It may be out of date as soon as it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// Id of the replica.
    pub replica: u64,
    /// What it does.
    pub role: Role,
    /// The term in which it does that.
    pub term: u64,
    /// Id of the replica that it believes to lead.
    pub leader: Option<u64>,
}

impl ReplicaStatus {
    /// Logs who leads now, where that is another one than before, and what this replica has become.
    pub(crate) fn log(&self, region: u64, before: &Self) {
        let Self { replica, role, term, leader } = *self;
        match leader {
            Some(leader) if Some(leader) != before.leader => {
                tracing::info!(replica, region, term, leader, "a replica leads");
            }
            None if before.leader.is_some() => {
                tracing::info!(replica, region, term, before = before.leader, "nobody leads");
            }
            _ => tracing::debug!(replica, region, term, ?role, "the role or the term has changed"),
        }
    }
}

/// Where the raftstore publishes the status and others look.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedStatus(Arc<Mutex<ReplicaStatus>>);

impl SharedStatus {
    pub(crate) fn get(&self) -> ReplicaStatus {
        *self.0.lock()
    }

    pub(crate) fn publish(&self, status: ReplicaStatus) {
        *self.0.lock() = status;
    }
}
