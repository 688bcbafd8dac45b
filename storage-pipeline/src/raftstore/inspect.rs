//! What the simulator sees of a peer, and the one choice of raft's that it makes itself, since raft would roll a die of
//! its own for it.

use raft::{GetEntriesContext, Raft, eraftpb::Entry};

use crate::raftstore::{log_storage::LogStorage, peer::Peer};

impl Peer {
    /// The state of raft.
    pub(crate) fn raft(&self) -> &Raft<LogStorage> {
        &self.node.raft
    }

    /// The entries from `low` up to and without `high`, which the log has.
    pub(crate) fn entries(&self, low: u64, high: u64) -> Result<Vec<Entry>, raft::Error> {
        self.node.raft.raft_log.slice(low, high, None, GetEntriesContext::empty(false))
    }

    /// Ticks without a leader after which this replica asks for votes, from the range that raft draws from.
    pub(crate) fn set_election_timeout(&mut self, ticks: usize) {
        self.node.raft.set_randomized_election_timeout(ticks);
    }
}
