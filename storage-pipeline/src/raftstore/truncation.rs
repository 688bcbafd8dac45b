//! How much of its log a peer keeps for the other replicas: what the slowest of those needs that are alive, up to a bound.
//! Whoever needs more gets a snapshot. Pure but for the log.

use raft::{INVALID_ID, ProgressState};

use crate::{engine::EngineError, observe::Moment, raftstore::peer::Peer};

impl Peer {
    /// Forgets log entries up to an index whose data is synced, but for those that others still need. What is kept for
    /// them holds at most `most_kept_bytes`; one that was not heard for more than `patience_ticks` is not waited for.
    ///
    /// # Errors
    /// As [`LogStorage::compact`](crate::raftstore::log_storage::LogStorage::compact).
    pub(crate) fn truncate(
        &mut self,
        index: u64,
        most_kept_bytes: u64,
        patience_ticks: usize,
    ) -> Result<(), EngineError> {
        let log = self.node.store();
        let needed = self
            .needed(patience_ticks as u64)
            .map_or(u64::MAX, |needed| needed.max(log.within(most_kept_bytes)));
        // Raft skips what is truncated, and may not know yet what is applied.
        let index = index.min(self.node.raft.raft_log.applied).min(needed);
        if index > log.truncated_index() {
            self.observer.note(Moment::Truncating { region: self.region(), index });
            self.node.mut_store().compact(index)?;
        }
        Ok(())
    }

    /// The last entry that every other replica has which is alive; nothing where there is no other. One that does not lead
    /// does not know: it may have to lead, and then be asked for any of them.
    fn needed(&self, patience_ticks: u64) -> Option<u64> {
        let raft = &self.node.raft;
        let others = raft.prs().iter().filter(|(id, _)| **id != raft.id);
        if !self.is_leading() {
            return (others.count() > 0).then_some(0);
        }
        let alive = others.filter(|(id, _)| self.silence(**id) <= patience_ticks);
        let has = alive.map(|(_, progress)| match progress.state {
            // It goes on behind the snapshot.
            ProgressState::Snapshot => progress.pending_snapshot,
            _ => progress.matched,
        });
        has.min().or(Some(u64::MAX)).filter(|_| raft.prs().iter().len() > 1)
    }

    /// Ticks of this leadership since another replica was heard.
    fn silence(&self, replica: u64) -> u64 {
        self.ticks - self.heard.get(&replica).copied().unwrap_or(self.led_since)
    }

    /// Another replica was heard.
    pub(super) fn hear(&mut self, replica: u64) {
        if replica != INVALID_ID && self.node.raft.prs().get(replica).is_some() {
            self.heard.insert(replica, self.ticks);
        }
    }
}
