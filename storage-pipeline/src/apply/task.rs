//! What the apply pool is sent.

use raft::eraftpb::Entry;

use crate::raftstore::{log_storage::Position, proposals::Pending};

/// A snapshot to install, or committed entries, in order, with the proposals whose places in the log they take.
#[derive(Debug, Default)]
pub(crate) struct ApplyTask {
    /// Id of the region.
    pub(crate) region: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) proposals: Vec<Pending>,
    pub(crate) bytes: usize,
    /// The last entry of the snapshot that is ready to be installed.
    pub(crate) snapshot: Option<Position>,
}
