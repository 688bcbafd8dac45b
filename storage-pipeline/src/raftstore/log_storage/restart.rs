//! The log and snapshots: those that raft sends to others come from the data, and one that takes the place of entries lets
//! the log begin anew behind it.

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};

use super::{
    LogStorage, LogWrite, Position, RecoverError, Recovered, RegionLog, Staged, recent::Known, recover,
};
use crate::{
    engine::EngineError,
    raftstore::snapshot::{ChunkReader, Snapshots},
};

impl LogStorage {
    /// The same where the data comes from a snapshot. A log that does not hold the snapshot's last entry begins anew behind
    /// it: it ended before, or what it has there was never committed.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_after_snapshot(
        engine: RegionLog,
        conf_state: ConfState,
        snapshot: Position,
    ) -> Result<Self, RecoverError> {
        let mut recovered = engine.recover()?;
        let own = snapshot.index.min(recovered.last_index);
        let mut known = recover::check(&engine, &recovered, own)?;
        if own == snapshot.index && known.terms.of(own) == snapshot.term {
            engine.sync()?;
        } else {
            let HardState { term, vote, commit } = recovered.hard_state;
            // A snapshot of a later term came from its leader; this replica had just heard of the term, and had no vote in it.
            let vote = if term < snapshot.term { raft::INVALID_ID } else { vote };
            let (term, commit) = (term.max(snapshot.term), commit.max(snapshot.index));
            let hard_state = HardState { term, vote, commit };
            let (hard, truncated) = (Some(&hard_state), Some(snapshot));
            engine.write(&[LogWrite {
                region: engine.region(),
                entries: &[],
                hard_state: hard,
                truncated,
                restart: true,
                sync: true,
            }])?;
            recovered = Recovered { hard_state, truncated: snapshot, last_index: snapshot.index };
            known = Known::after(snapshot);
        }
        Ok(Self::new(engine, conf_state, recovered, known))
    }

    /// Lets raft have snapshots for others, and takes theirs.
    pub(crate) fn set_snapshots(&mut self, snapshots: Snapshots) {
        self.snapshots = Some(snapshots);
    }

    /// The chunks of the snapshot that raft has got for a replica.
    pub(crate) fn chunks_for(&self, replica: u64, most_bytes: usize) -> Option<ChunkReader> {
        let data = self.snapshots.as_ref()?.data_for(replica)?;
        Some(ChunkReader::new(data, most_bytes))
    }

    /// Whether a snapshot of another replica has arrived and may be shown to raft.
    ///
    /// # Errors
    /// The data engine's refusal.
    pub(crate) fn has_arrived(&self, snapshot: &Snapshot) -> Result<bool, EngineError> {
        self.snapshots.as_ref().map_or(Ok(false), |snapshots| snapshots.complete(snapshot))
    }

    /// Drops a snapshot that had arrived and that raft does not want.
    ///
    /// # Errors
    /// The data engine's refusal.
    pub(crate) fn discard_arrived(&self) -> Result<(), EngineError> {
        self.snapshots.as_ref().map_or(Ok(()), Snapshots::discard)
    }

    /// Keeps for the next write, which is synced, that the log begins anew behind a snapshot, with the entries and the hard
    /// state that come with it.
    ///
    /// # Errors
    /// The first fault of an earlier call.
    pub(crate) fn stage_restart(
        &mut self,
        snapshot: Position,
        entries: Vec<Entry>,
        hard_state: Option<HardState>,
    ) -> Result<(), EngineError> {
        self.check_fault()?;
        if let Some(new) = hard_state {
            self.hard_state = new;
        }
        let truncated = Some(snapshot);
        self.staged = Some(Staged { entries, keeps_state: true, truncated, restart: true, sync: true });
        Ok(())
    }
}
