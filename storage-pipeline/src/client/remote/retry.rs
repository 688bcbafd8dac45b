//! What becomes of a request after each attempt: whether it is done, and else whether, whom and when to ask again. Pure;
//! hands the client its next step.
//!
//! A request is repeated only where that cannot do harm. Once an attempt may have taken effect without an answer there is
//! doubt: "not executed" then speaks of the last attempt alone, so that the caller is told *indeterminate* instead.

use std::sync::Arc;

use crate::{
    command::{Command, Response},
    error::{Cause, Error, Outcome},
};

/// What repeating a request would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing: it only reads.
    Read,
    /// Nothing that matters: it takes effect once, or reserves what may stay unused.
    Repeatable,
    /// As above, and some answers also settle what became of attempts before.
    Commit,
    /// It would write again, perhaps over what others wrote since.
    Once,
}

impl Kind {
    pub(super) fn of(command: &Command) -> Self {
        match command {
            Command::Get(_)
            | Command::BatchGet(_)
            | Command::Scan(_)
            | Command::ScanLock(_)
            | Command::ScanGcKeys(_)
            | Command::RawGet(_)
            | Command::RawScan(_) => Self::Read,
            Command::Prewrite(_)
            | Command::Rollback(_)
            | Command::Cleanup(_)
            | Command::CheckTxnStatus(_)
            | Command::ResolveLock(_)
            | Command::TxnHeartBeat(_)
            | Command::Gc(_)
            | Command::AllocateTimestamps(_) => Self::Repeatable,
            Command::Commit(_) => Self::Commit,
            Command::RawPut(_) | Command::RawDelete(_) | Command::RawCompareAndSwap(_) => Self::Once,
        }
    }

    /// Whether this answer to a repeated request says that no attempt took effect, and none will.
    fn is_settled_by(self, error: &Error) -> bool {
        // The lock is gone without a commit, or stays until a later timestamp, or was committed at another one.
        let settles = |error: &Error| {
            matches!(
                error,
                Error::TxnLockNotFound { .. } | Error::CommitTsExpired { .. } | Error::Committed { .. }
            )
        };
        self == Self::Commit && settles(error)
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// With an answer of the node that was asked.
    Answered(Outcome<Response>),
    /// The request did not leave.
    NotSent(Arc<str>),
    /// It left, and no answer came.
    Lost(Cause),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Tell the caller.
    Done(Outcome<Response>),
    /// Ask again.
    Again {
        /// Whom.
        whom: Whom,
        /// Whether to wait before.
        pauses: bool,
    },
}

/// Whom to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// The same node.
    Same,
    /// The node that the last answer named, where it named one, else another one.
    Leader,
    /// Another node.
    Other,
}

/// A request on its way through its attempts.
#[derive(Debug)]
pub(super) struct Course {
    kind: Kind,
    /// Why an attempt may have taken effect, where one may.
    doubt: Option<Cause>,
    /// Whether the last step went to a leader that was named, without a pause.
    follows: bool,
}

impl Course {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, doubt: None, follows: false }
    }

    /// The step after an attempt. `is_over` says that there is no time for another one; `names_leader`, that the answer did.
    pub(super) fn next(&mut self, attempt: Attempt, names_leader: bool, is_over: bool) -> Step {
        let follows = std::mem::take(&mut self.follows);
        let (whom, pauses, why) = match attempt {
            Attempt::Answered(Outcome::Applied(response)) => return Step::Done(Outcome::Applied(response)),
            Attempt::Answered(Outcome::NotExecuted(error)) => match again(&error, names_leader) {
                None => return Step::Done(self.not_executed(error)),
                // Two nodes that each take the other for the leader must not be asked without end.
                Some(whom) => (whom, whom != Whom::Leader || !names_leader || follows, error),
            },
            Attempt::NotSent(why) => (Whom::Other, true, Error::Unreachable(why)),
            Attempt::Answered(Outcome::Indeterminate(cause)) | Attempt::Lost(cause) => {
                if self.kind == Kind::Once {
                    return Step::Done(Outcome::Indeterminate(cause));
                }
                let why = Error::Unreachable(cause.to_string().into());
                if self.kind != Kind::Read {
                    self.doubt.get_or_insert(cause);
                }
                (Whom::Other, true, why)
            }
        };
        if is_over {
            return Step::Done(self.not_executed(why));
        }
        self.follows = whom == Whom::Leader && !pauses;
        Step::Again { whom, pauses }
    }

    /// What the caller is told where the last attempt was not executed.
    fn not_executed(&self, error: Error) -> Outcome<Response> {
        match &self.doubt {
            Some(cause) if !self.kind.is_settled_by(&error) => Outcome::Indeterminate(cause.clone()),
            _ => Outcome::NotExecuted(error),
        }
    }
}

/// Whom to ask again after this error; nobody, where another attempt would be answered the same.
fn again(error: &Error, names_leader: bool) -> Option<Whom> {
    match error {
        Error::NotLeader { .. } if names_leader => Some(Whom::Leader),
        Error::NotLeader { .. } | Error::Closed | Error::Poisoned(_) | Error::Unreachable(_) => {
            Some(Whom::Other)
        }
        Error::SchedTooBusy | Error::StaleCommand | Error::EpochPending { .. } | Error::Dropped => {
            Some(Whom::Same)
        }
        Error::InvalidCommand(_)
        | Error::DeadlineExceeded
        | Error::KeyNotInRegion { .. }
        | Error::RegionNotFound { .. }
        | Error::RegionNotNamed
        | Error::EpochNotMatch(_)
        | Error::KeyIsLocked(_)
        | Error::WriteConflict(_)
        | Error::TxnLockNotFound { .. }
        | Error::Committed { .. }
        | Error::TxnNotFound { .. }
        | Error::AlreadyExist { .. }
        | Error::CommitTsExpired { .. }
        | Error::PrimaryMismatch { .. }
        | Error::GcTooEarly { .. }
        | Error::WouldBlockPipeline
        | Error::MemberChange(_)
        | Error::Corrupt(_)
        | Error::Engine(_)
        | Error::Refused(_) => None,
    }
}

#[cfg(test)]
mod tests;
