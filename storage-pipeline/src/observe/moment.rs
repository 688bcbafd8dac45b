//! The moments that an observer is told: what is reached, by which command, in the log of which region.

use std::time::Instant;

use crate::error::OutcomeKind;

named! {
/// A moment in the life of a command or of a batch. What counts entries of a log names the region whose log it is. Observers run on the thread that reached it and delay it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
Moment {
    /// A command was accepted: it will be answered exactly once.
    Admitted {
        /// Number of the command.
        cid: u64,
        /// Id of the region that it is for.
        region: u64,
        /// Its name.
        kind: &'static str,
        /// Whether it only reads: then its next moment is that of its snapshot, otherwise that of its latches.
        is_read: bool,
    },
    /// A command holds its latches.
    LatchesHeld {
        /// Number of the command.
        cid: u64,
        /// Whether it reads nothing and names no epoch: then it goes to the raftstore at once, otherwise for its snapshot.
        is_blind: bool,
    },
    /// A snapshot was taken for a command.
    SnapshotTaken {
        /// Number of the command.
        cid: u64,
        /// Under the lease, otherwise through ReadIndex.
        under_lease: bool,
    },
    /// A worker is about to run a command's check. A command that is blind has none, nor a snapshot.
    Processing {
        /// Number of the command.
        cid: u64,
    },
    /// A command is about to be handed to raft; from here on its fate is raft's.
    Proposing {
        /// Number of the command.
        cid: u64,
    },
    /// A command was handed to raft.
    Proposed {
        /// Id of the region.
        region: u64,
        /// Number of the command.
        cid: u64,
        /// Index of its entry.
        index: u64,
        /// Term of its entry.
        term: u64,
    },
    /// Log entries of a region are about to be written, alone or together with those of others.
    LogWriting {
        /// Id of the region.
        region: u64,
        /// How many.
        entries: usize,
    },
    /// Log entries are in the log.
    LogWritten {
        /// Id of the region.
        region: u64,
        /// Index of the last entry of the log.
        last_index: u64,
        /// Whether the write was synced.
        synced: bool,
    },
    /// Entries of a region are committed and go to apply.
    Committed {
        /// Id of the region.
        region: u64,
        /// Index of the last of them.
        index: u64,
    },
    /// A batch is about to be written to the data engine.
    Applying {
        /// Id of the region.
        region: u64,
        /// Index of the last entry of the batch.
        index: u64,
    },
    /// A batch is in the data engine and the applied index is published.
    Applied {
        /// Id of the region.
        region: u64,
        /// Index of the last entry of the batch.
        index: u64,
    },
    /// A caller is about to be told its outcome.
    TellingCaller {
        /// Number of the command.
        cid: u64,
        /// When the batch with its entry was applied, where one was.
        applied_at: Option<Instant>,
    },
    /// A caller's callback has returned. Where it woke another thread, that one may have run for a while before.
    CallerTold {
        /// Number of the command.
        cid: u64,
        /// What it was told, without its result or reason.
        outcome: OutcomeKind,
    },
    /// A command is off the books. The latches of a write are released and its successors woken.
    Released {
        /// Number of the command.
        cid: u64,
        /// When the batch with its entry was applied, where one was.
        applied_at: Option<Instant>,
    },
    /// A snapshot is about to be sent to a replica that needs entries which the log has forgotten.
    SnapshotSending {
        /// Id of the region.
        region: u64,
        /// Id of the replica.
        to: u64,
        /// Index of the last entry that the snapshot holds.
        index: u64,
    },
    /// A snapshot of another replica is about to replace the data.
    SnapshotInstalling {
        /// Id of the region.
        region: u64,
        /// Index of the last entry that the snapshot holds.
        index: u64,
    },
    /// The data is synced and the log is about to be truncated.
    Truncating {
        /// Id of the region.
        region: u64,
        /// Index of the last entry that is dropped.
        index: u64,
    },
}
}

impl Moment {
    /// Number of the command, where it is a moment of one.
    #[must_use]
    pub const fn cid(&self) -> Option<u64> {
        match *self {
            Self::Admitted { cid, .. }
            | Self::LatchesHeld { cid, .. }
            | Self::SnapshotTaken { cid, .. }
            | Self::Processing { cid }
            | Self::Proposing { cid }
            | Self::Proposed { cid, .. }
            | Self::TellingCaller { cid, .. }
            | Self::CallerTold { cid, .. }
            | Self::Released { cid, .. } => Some(cid),
            _ => None,
        }
    }

    /// Id of the region, where it is a moment of one: an index and a term mean nothing without it.
    #[must_use]
    pub const fn region(&self) -> Option<u64> {
        match *self {
            Self::Admitted { region, .. }
            | Self::Proposed { region, .. }
            | Self::LogWriting { region, .. }
            | Self::LogWritten { region, .. }
            | Self::Committed { region, .. }
            | Self::Applying { region, .. }
            | Self::Applied { region, .. }
            | Self::SnapshotSending { region, .. }
            | Self::SnapshotInstalling { region, .. }
            | Self::Truncating { region, .. } => Some(region),
            _ => None,
        }
    }
}
