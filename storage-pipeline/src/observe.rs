//! The one seam for metrics, tracing and fail points: what an observer is told, when, and where it may step in.

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

#[cfg(feature = "store")]
pub(crate) mod entries;
mod moment;

pub use moment::Moment;

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
