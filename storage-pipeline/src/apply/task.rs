//! What the apply pool is sent.

use raft::eraftpb::Entry;

use crate::raftstore::proposals::Pending;

/// Committed entries, in order, with the proposals whose places in the log they take.
#[derive(Debug)]
pub(crate) struct ApplyTask {
    pub(crate) entries: Vec<Entry>,
    pub(crate) proposals: Vec<Pending>,
    pub(crate) bytes: usize,
}
