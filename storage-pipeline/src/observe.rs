//! The one seam for metrics, tracing and fail points: what an observer is told, when, and where it may step in.

use std::time::Instant;
#[cfg(feature = "store")]
use std::{fmt, sync::Arc};

/// Makes an enum and the names of its variants.
macro_rules! named {
    (
        $(#[$about:meta])* $type:ident {
            $($(#[$doc:meta])* $name:ident $({ $($(#[$field_doc:meta])* $field:ident: $of:ty,)* })?,)*
        }
    ) => {
        $(#[$about])*
        pub enum $type { $($(#[$doc])* $name $({ $($(#[$field_doc])* $field: $of,)* })?,)* }

        impl $type {
            /// The names of all, in the order in which they stand here.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            /// Its name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name { .. } => stringify!($name),)* }
            }

            /// Its name as a fail point.
            #[cfg(feature = "failpoints")]
            pub(crate) const fn path(&self) -> &'static str {
                match self { $(Self::$name { .. } => concat!("storage_pipeline::", stringify!($name)),)* }
            }
        }
    };
}

named! {
/// A moment in the life of a command or of a batch. Observers run on the thread that reached it and delay it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
Moment {
    /// A command was accepted: it will be answered exactly once.
    Admitted {
        /// Number of the command.
        cid: u64,
    },
    /// A command holds its latches.
    LatchesHeld {
        /// Number of the command.
        cid: u64,
    },
    /// A snapshot was taken for a command.
    SnapshotTaken {
        /// Number of the command.
        cid: u64,
        /// Under the lease, otherwise through ReadIndex.
        under_lease: bool,
    },
    /// A worker is about to run a command's check. A command that reads nothing has none, nor a snapshot.
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
        /// Number of the command.
        cid: u64,
        /// Index of its entry.
        index: u64,
        /// Term of its entry.
        term: u64,
    },
    /// Log entries are about to be written.
    LogWriting {
        /// How many.
        entries: usize,
    },
    /// Log entries are in the log.
    LogWritten {
        /// Index of the last entry of the log.
        last_index: u64,
        /// Whether the write was synced.
        synced: bool,
    },
    /// A batch is about to be written to the data engine.
    Applying {
        /// Index of the last entry of the batch.
        index: u64,
    },
    /// A batch is in the data engine and the applied index is published.
    Applied {
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
    },
    /// A command's latches are released and its successors woken.
    Released {
        /// Number of the command.
        cid: u64,
        /// When the batch with its entry was applied, where one was.
        applied_at: Option<Instant>,
    },
    /// A snapshot is about to be sent to a replica that needs entries which the log has forgotten.
    SnapshotSending {
        /// Id of the replica.
        to: u64,
        /// Index of the last entry that the snapshot holds.
        index: u64,
    },
    /// A snapshot of another replica is about to replace the data.
    SnapshotInstalling {
        /// Index of the last entry that the snapshot holds.
        index: u64,
    },
    /// The data is synced and the log is about to be truncated.
    Truncating {
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
            Self::Admitted { cid }
            | Self::LatchesHeld { cid }
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
}

named! {
/// A place where an observer may make a step fail, as the outside world could.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
FailPoint {
    /// The scheduler cannot hand a command to the worker pool.
    SnapshotRefused,
    /// The raftstore's mailbox refuses a proposal as full.
    ProposalRefused,
    /// raft drops a proposal.
    RaftDropsProposal,
    /// raft drops a read request.
    RaftDropsRead,
    /// The log write fails.
    LogWrite,
    /// The data write fails.
    DataWrite,
}
}

/// Told every moment, asked at every fail point. Both do nothing by default.
pub trait Observe: Send + Sync + 'static {
    /// Told on the thread that reached the moment, which waits for the return. No lock is held.
    fn moment(&self, moment: Moment) {
        let _ = moment;
    }

    /// Whether the step at this point shall fail.
    fn fails(&self, point: FailPoint) -> bool {
        let _ = point;
        false
    }
}

/// What every room holds: an observer, or nobody.
#[cfg(feature = "store")]
#[derive(Clone, Default)]
pub(crate) struct Observer(Option<Arc<dyn Observe>>);

#[cfg(feature = "store")]
impl Observer {
    pub(crate) fn new(observe: Arc<dyn Observe>) -> Self {
        Self(Some(observe))
    }

    pub(crate) fn note(&self, moment: Moment) {
        if let Some(observe) = &self.0 {
            observe.moment(moment);
        }
    }

    pub(crate) fn fails(&self, point: FailPoint) -> bool {
        self.0.as_ref().is_some_and(|observe| observe.fails(point))
    }
}

#[cfg(feature = "store")]
impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer" } else { "Nobody" })
    }
}
