//! Faults that can be planted in the pipeline, to show that the simulator finds them. An ordinary build has none: there
//! `planted!` is constantly false.

#[cfg(feature = "simulator")]
pub use switch::Planted;
#[cfg(feature = "simulator")]
pub(crate) use switch::{is, plant};

/// Whether this fault is planted.
#[cfg(not(feature = "simulator"))]
macro_rules! planted {
    ($fault:ident) => {
        false
    };
}
#[cfg(feature = "simulator")]
macro_rules! planted {
    ($fault:ident) => {
        $crate::planted::is($crate::planted::Planted::$fault)
    };
}
pub(crate) use planted;

#[cfg(feature = "simulator")]
mod switch {
    use std::{cell::Cell, fmt, str::FromStr};

    thread_local! {
        static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    /// Makes the enum, the list of all and their names.
    macro_rules! faults {
        ($($(#[$doc:meta])* $fault:ident,)*) => {
            /// A fault that can be planted in the pipeline: a step that is left out, or taken too early.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum Planted { $($(#[$doc])* $fault,)* }

            impl Planted {
                /// Every fault.
                pub const ALL: &'static [Self] = &[$(Self::$fault,)*];

                /// Its name, as it is given on a command line.
                #[must_use]
                pub const fn name(self) -> &'static str {
                    match self { $(Self::$fault => stringify!($fault),)* }
                }
            }
        };
    }

    faults! {
        /// The releaser forgets the latches of some commands.
        LostRelease,
        /// A command whose caller was told that its deadline passed gives its latches away.
        ReleaseAtDeadline,
        /// Callers are told before the batch is written.
        TellBeforeWrite,
        /// Commands keep their room in the books.
        KeepsRoom,
        /// A vote is not synced before it leaves.
        UnsyncedVote,
        /// Entries are not synced before they are acknowledged.
        UnsyncedAppend,
        /// Votes and acknowledgements leave before the log is written.
        AcknowledgesEarly,
        /// The lease is far longer than an election takes.
        EndlessLease,
        /// The lease goes on when another replica was told to take over.
        LeaseOutlivesTransfer,
        /// The lease begins before an entry of its own term is applied.
        LeaseBeforeOwnTerm,
        /// A restarted voter votes at once.
        EarlyVote,
        /// Reads are confirmed without asking a quorum.
        ReadWithoutQuorum,
        /// Confirmed reads do not wait for apply.
        ReadsUnapplied,
        /// Proposals outlive the leadership that made them, and are matched by their index alone.
        MatchByIndexOnly,
        /// What was decided on a snapshot of one term is proposed in another.
        SnapshotOfAnyTerm,
        /// What was promised never to run is proposed.
        BrokenPromise,
        /// A leader that steps down forgets its proposals.
        LostOnStepDown,
        /// A start believes that all is left of what the data says is applied.
        TrustsAppliedIndex,
        /// The log is truncated before the data is synced.
        TruncatesUnsynced,
        /// A snapshot is installed, and the staged one removed, without a sync.
        UnsyncedInstall,
        /// A snapshot says that it holds all that is committed, and its data may be behind that.
        SnapshotAheadOfData,
        /// Changes of members are made again when the log is applied again.
        ChangesAgain,
        /// Raft is told of changes of members that a snapshot stands for.
        ToldBehindSnapshot,
        /// That a change of members is committed is not synced.
        UnsyncedChange,
        /// A change of members is over as soon as the leader has applied it.
        TellsChangeAtOnce,
        /// Of what several regions write to the log at once only the first one's part is written.
        WritesOneRegion,
    }

    impl fmt::Display for Planted {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.name())
        }
    }

    /// No fault has this name.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct UnknownFault(String);

    impl fmt::Display for UnknownFault {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "no fault is called {}; there are", self.0)?;
            Planted::ALL.iter().try_for_each(|fault| write!(f, " {fault}"))
        }
    }

    impl std::error::Error for UnknownFault {}

    impl FromStr for Planted {
        type Err = UnknownFault;

        fn from_str(name: &str) -> Result<Self, UnknownFault> {
            let named = Self::ALL.iter().find(|fault| fault.name() == name);
            named.copied().ok_or_else(|| UnknownFault(name.to_owned()))
        }
    }

    /// Plants a fault on the current thread, or none.
    pub(crate) fn plant(fault: Option<Planted>) {
        PLANTED.set(fault);
    }

    pub(crate) fn is(fault: Planted) -> bool {
        PLANTED.get() == Some(fault)
    }
}
