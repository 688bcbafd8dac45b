//! The completion modes: who tells a caller, and who releases the latches. Two questions, asked by the scheduler.

use std::fmt;

/// Who tells the caller, and who releases the latches. The steps are the same in every mode; only the thread that
/// runs them differs. `docs/completion-modes.md` compares the modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CompletionMode {
    /// One scheduler thread tells the caller and releases the latches.
    SchedulerThread,
    /// The apply pool tells the caller through the slot; one scheduler thread releases the latches.
    #[default]
    ApplyNotify,
    /// No scheduler thread: the apply pool tells the caller, releases the latches and starts the successors.
    ApplyAll,
    /// No scheduler thread: the worker pool tells the caller and releases the latches.
    WorkerAll,
    /// No scheduler thread: the apply pool tells the caller through the slot; the worker pool releases the latches.
    ApplyNotifyWorkerRelease,
}

impl CompletionMode {
    /// Every mode, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::SchedulerThread,
        Self::ApplyNotify,
        Self::ApplyAll,
        Self::WorkerAll,
        Self::ApplyNotifyWorkerRelease,
    ];

    /// Whoever settles a command tells its caller at once; otherwise the releaser does.
    #[must_use]
    pub const fn settler_tells(self) -> bool {
        matches!(self, Self::ApplyNotify | Self::ApplyAll | Self::ApplyNotifyWorkerRelease)
    }

    /// Who releases the latches of a settled command.
    #[must_use]
    pub const fn releaser(self) -> Releaser {
        match self {
            Self::SchedulerThread | Self::ApplyNotify => Releaser::SchedulerThread,
            Self::ApplyAll => Releaser::SettlingThread,
            Self::WorkerAll | Self::ApplyNotifyWorkerRelease => Releaser::WorkerPool,
        }
    }
}

impl fmt::Display for CompletionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::SchedulerThread => "SchedulerThread",
            Self::ApplyNotify => "ApplyNotify",
            Self::ApplyAll => "ApplyAll",
            Self::WorkerAll => "WorkerAll",
            Self::ApplyNotifyWorkerRelease => "ApplyNotifyWorkerRelease",
        })
    }
}

impl std::str::FromStr for CompletionMode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let named = |mode: &Self| mode.to_string().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

/// No completion mode has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMode(pub String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown completion mode \"{}\"; known are", self.0)?;
        CompletionMode::ALL.iter().try_for_each(|mode| write!(f, " {mode}"))
    }
}

impl std::error::Error for UnknownMode {}

/// The thread that releases the latches of a settled command and wakes its successors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Releaser {
    /// The one scheduler thread.
    SchedulerThread,
    /// The thread that settled the command.
    SettlingThread,
    /// A thread of the worker pool.
    WorkerPool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named_as_they_print() {
        for mode in CompletionMode::ALL {
            assert_eq!(mode.to_string().to_lowercase().parse(), Ok(mode));
        }
        assert!("Nobody".parse::<CompletionMode>().unwrap_err().to_string().contains("WorkerAll"));
    }
}
