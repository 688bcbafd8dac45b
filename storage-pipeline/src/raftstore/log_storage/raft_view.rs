//! The log as raft reads it.

use raft::{
    GetEntriesContext, RaftState, Storage, StorageError,
    eraftpb::{Entry, Snapshot},
};

use super::LogStorage;
use crate::planted::planted;

impl Storage for LogStorage {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.clone(), self.conf_state.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.truncated.index {
            return Err(raft::Error::Store(StorageError::Compacted));
        }
        if high > self.last_index + 1 {
            return Err(raft::Error::Store(StorageError::Unavailable));
        }
        let max_bytes = max_size.into().unwrap_or(u64::MAX);
        match self.known.recent.entries(low, high, max_bytes) {
            Some(entries) => Ok(entries),
            None => self
                .engine
                .entries(low, high, max_bytes)
                .map_err(|error| raft::Error::Store(StorageError::Other(Box::new(error)))),
        }
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index < self.truncated.index {
            return Err(raft::Error::Store(StorageError::Compacted));
        }
        if index > self.last_index {
            return Err(raft::Error::Store(StorageError::Unavailable));
        }
        Ok(self.known.terms.of(index))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.truncated.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last_index)
    }

    /// A snapshot is for a replica that needs forgotten entries. Where none can be had, raft is told to ask again later.
    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        let later = raft::Error::Store(StorageError::SnapshotTemporarilyUnavailable);
        let snapshots = self.snapshots.as_ref().ok_or(later)?;
        let mut snapshot = snapshots
            .take(request_index.max(self.truncated.index), to, |index| self.known.terms.of(index))?;
        if planted!(SnapshotAheadOfData) {
            let index = self.hard_state.commit;
            let metadata = snapshot.mut_metadata();
            (metadata.index, metadata.term) = (index, self.known.terms.of(index));
        }
        Ok(snapshot)
    }
}
