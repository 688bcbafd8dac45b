//! Why something was not executed, or why nobody knows, on the wire and back.

use super::{
    Malformed, same_fields, to_u64, to_usize,
    wire::{self, cause::Cause as CauseOf, error::Error as Of, invalid_command::Why},
};
use crate::{
    error::{Cause, Error, InvalidCommand, LockInfo, WriteConflict},
    members::MemberChangeRefused,
    region::{CurrentRegion, Region, RegionEpoch},
};
use wire::member_change_refused::Why as MemberWhy;

same_fields! {
    LockInfo { key, primary, start_ts, ttl_ms, txn_size, min_commit_ts }
    WriteConflict { key, primary, start_ts, conflict_start_ts, conflict_commit_ts }
}

impl From<CurrentRegion> for wire::CurrentRegion {
    fn from(current: CurrentRegion) -> Self {
        let CurrentRegion { region: Region { id, start_key, end_key }, epoch } = current;
        let RegionEpoch { conf_ver, version } = epoch;
        Self { id, start_key, end_key, conf_ver, version }
    }
}

impl From<wire::CurrentRegion> for CurrentRegion {
    fn from(current: wire::CurrentRegion) -> Self {
        let wire::CurrentRegion { id, start_key, end_key, conf_ver, version } = current;
        let epoch = RegionEpoch { conf_ver, version };
        Self { region: Region { id, start_key, end_key }, epoch }
    }
}

impl From<Cause> for wire::Cause {
    fn from(cause: Cause) -> Self {
        let nothing = wire::Nothing {};
        let cause = match cause {
            Cause::DeadlineExceeded => CauseOf::DeadlineExceeded(nothing),
            Cause::LeadershipLost => CauseOf::LeadershipLost(nothing),
            Cause::SnapshotInstalled => CauseOf::SnapshotInstalled(nothing),
            Cause::Closed => CauseOf::Closed(nothing),
            Cause::Poisoned(why) => CauseOf::Poisoned(why.to_string()),
            Cause::Dropped => CauseOf::Dropped(nothing),
            Cause::ConnectionLost(why) => CauseOf::ConnectionLost(why.to_string()),
        };
        Self { cause: Some(cause) }
    }
}

impl TryFrom<wire::Cause> for Cause {
    type Error = Malformed;

    fn try_from(cause: wire::Cause) -> Result<Self, Malformed> {
        Ok(match cause.cause.ok_or_else(|| Malformed::unset("cause"))? {
            CauseOf::DeadlineExceeded(_) => Self::DeadlineExceeded,
            CauseOf::LeadershipLost(_) => Self::LeadershipLost,
            CauseOf::SnapshotInstalled(_) => Self::SnapshotInstalled,
            CauseOf::Closed(_) => Self::Closed,
            CauseOf::Poisoned(why) => Self::Poisoned(why.into()),
            CauseOf::Dropped(_) => Self::Dropped,
            CauseOf::ConnectionLost(why) => Self::ConnectionLost(why.into()),
        })
    }
}

impl From<InvalidCommand> for wire::InvalidCommand {
    fn from(why: InvalidCommand) -> Self {
        let (field, why) = match why {
            InvalidCommand::EmptyKey { field } => (field, Why::EmptyKey(wire::Nothing {})),
            InvalidCommand::TooLarge { field, size, limit } => {
                let [size, limit] = [size, limit].map(to_u64);
                (field, Why::TooLarge(wire::SizeAndLimit { size, limit }))
            }
            InvalidCommand::EmptyList { field } => (field, Why::EmptyList(wire::Nothing {})),
            InvalidCommand::DuplicateKey { field, key } => (field, Why::DuplicateKey(key)),
            InvalidCommand::TimestampOrder { field, value, must_exceed } => {
                (field, Why::TimestampOrder(wire::TimestampOrder { value, must_exceed }))
            }
            InvalidCommand::OutOfRange { field, value, range } => {
                (field, Why::OutOfRange(wire::OutOfRange { value, range: range.into_owned() }))
            }
        };
        Self { why: Some(why), field: field.into_owned() }
    }
}

impl TryFrom<wire::InvalidCommand> for InvalidCommand {
    type Error = Malformed;

    fn try_from(wire::InvalidCommand { why, field }: wire::InvalidCommand) -> Result<Self, Malformed> {
        let field = field.into();
        Ok(match why.ok_or_else(|| Malformed::unset("invalid_command.why"))? {
            Why::EmptyKey(_) => Self::EmptyKey { field },
            Why::TooLarge(wire::SizeAndLimit { size, limit }) => {
                Self::TooLarge { field, size: to_usize(size), limit: to_usize(limit) }
            }
            Why::EmptyList(_) => Self::EmptyList { field },
            Why::DuplicateKey(key) => Self::DuplicateKey { field, key },
            Why::TimestampOrder(wire::TimestampOrder { value, must_exceed }) => {
                Self::TimestampOrder { field, value, must_exceed }
            }
            Why::OutOfRange(wire::OutOfRange { value, range }) => {
                Self::OutOfRange { field, value, range: range.into() }
            }
        })
    }
}

impl From<MemberChangeRefused> for wire::MemberChangeRefused {
    fn from(refused: MemberChangeRefused) -> Self {
        let (why, replica) = match refused {
            MemberChangeRefused::Nothing => (MemberWhy::Nothing, 0),
            MemberChangeRefused::ZeroId => (MemberWhy::ZeroId, 0),
            MemberChangeRefused::NamedTwice { replica } => (MemberWhy::NamedTwice, replica),
            MemberChangeRefused::Unknown { replica } => (MemberWhy::Unknown, replica),
            MemberChangeRefused::AlreadyThere { replica } => (MemberWhy::AlreadyThere, replica),
            MemberChangeRefused::NoVoterLeft => (MemberWhy::NoVoterLeft, 0),
            MemberChangeRefused::Pending => (MemberWhy::Pending, 0),
            MemberChangeRefused::Alone => (MemberWhy::Alone, 0),
            MemberChangeRefused::NoVoter { replica } => (MemberWhy::NoVoter, replica),
        };
        Self { why: why.into(), replica }
    }
}

impl TryFrom<wire::MemberChangeRefused> for MemberChangeRefused {
    type Error = Malformed;

    fn try_from(refused: wire::MemberChangeRefused) -> Result<Self, Malformed> {
        let wire::MemberChangeRefused { why, replica } = refused;
        Ok(match MemberWhy::try_from(why).unwrap_or(MemberWhy::Unspecified) {
            MemberWhy::Unspecified => return Err(Malformed::unknown("member_change.why", why)),
            MemberWhy::Nothing => Self::Nothing,
            MemberWhy::ZeroId => Self::ZeroId,
            MemberWhy::NamedTwice => Self::NamedTwice { replica },
            MemberWhy::Unknown => Self::Unknown { replica },
            MemberWhy::AlreadyThere => Self::AlreadyThere { replica },
            MemberWhy::NoVoterLeft => Self::NoVoterLeft,
            MemberWhy::Pending => Self::Pending,
            MemberWhy::Alone => Self::Alone,
            MemberWhy::NoVoter => Self::NoVoter { replica },
        })
    }
}

impl From<Error> for wire::Error {
    fn from(error: Error) -> Self {
        let nothing = wire::Nothing {};
        let error = match error {
            Error::InvalidCommand(why) => Of::InvalidCommand(why.into()),
            Error::SchedTooBusy => Of::SchedTooBusy(nothing),
            Error::DeadlineExceeded => Of::DeadlineExceeded(nothing),
            Error::NotLeader { leader } => Of::NotLeader(wire::NotLeader { leader }),
            Error::StaleCommand => Of::StaleCommand(nothing),
            Error::KeyNotInRegion { key, region, start_key, end_key } => {
                Of::KeyNotInRegion(wire::KeyNotInRegion { key, region, start_key, end_key })
            }
            Error::RegionNotFound { region } => Of::RegionNotFound(region),
            Error::RegionNotNamed => Of::RegionNotNamed(nothing),
            Error::EpochNotMatch(current) => Of::EpochNotMatch((*current).into()),
            Error::EpochPending { region } => Of::EpochPending(region),
            Error::KeyIsLocked(lock) => Of::KeyIsLocked((*lock).into()),
            Error::WriteConflict(conflict) => Of::WriteConflict((*conflict).into()),
            Error::TxnLockNotFound { start_ts, key } => {
                Of::TxnLockNotFound(wire::TxnAndKey { start_ts, key })
            }
            Error::Committed { start_ts, commit_ts } => {
                Of::Committed(wire::Committed { start_ts, commit_ts })
            }
            Error::TxnNotFound { start_ts, key } => Of::TxnNotFound(wire::TxnAndKey { start_ts, key }),
            Error::AlreadyExist { key } => Of::AlreadyExist(key),
            Error::CommitTsExpired { start_ts, commit_ts, min_commit_ts } => {
                Of::CommitTsExpired(wire::CommitTsExpired { start_ts, commit_ts, min_commit_ts })
            }
            Error::PrimaryMismatch { primary } => Of::PrimaryMismatch(primary),
            Error::GcTooEarly { read_ts, safe_point } => {
                Of::GcTooEarly(wire::GcTooEarly { read_ts, safe_point })
            }
            Error::WouldBlockPipeline => Of::WouldBlockPipeline(nothing),
            Error::MemberChange(why) => Of::MemberChange(why.into()),
            Error::Closed => Of::Closed(nothing),
            Error::Poisoned(why) => Of::Poisoned(why.to_string()),
            Error::Corrupt(what) => Of::Corrupt(what.to_string()),
            Error::Engine(what) => Of::Engine(what.to_string()),
            Error::Dropped => Of::Dropped(nothing),
            Error::Refused(why) => Of::Refused(why.to_string()),
            Error::Unreachable(why) => Of::Unreachable(why.to_string()),
        };
        Self { error: Some(error) }
    }
}

impl TryFrom<wire::Error> for Error {
    type Error = Malformed;

    fn try_from(error: wire::Error) -> Result<Self, Malformed> {
        Ok(match error.error.ok_or_else(|| Malformed::unset("error"))? {
            Of::InvalidCommand(why) => Self::InvalidCommand(why.try_into()?),
            Of::SchedTooBusy(_) => Self::SchedTooBusy,
            Of::DeadlineExceeded(_) => Self::DeadlineExceeded,
            Of::NotLeader(wire::NotLeader { leader }) => Self::NotLeader { leader },
            Of::StaleCommand(_) => Self::StaleCommand,
            Of::KeyNotInRegion(wire::KeyNotInRegion { key, region, start_key, end_key }) => {
                Self::KeyNotInRegion { key, region, start_key, end_key }
            }
            Of::RegionNotFound(region) => Self::RegionNotFound { region },
            Of::RegionNotNamed(_) => Self::RegionNotNamed,
            Of::EpochNotMatch(current) => Self::EpochNotMatch(Box::new(current.into())),
            Of::EpochPending(region) => Self::EpochPending { region },
            Of::KeyIsLocked(lock) => Self::KeyIsLocked(Box::new(lock.into())),
            Of::WriteConflict(conflict) => Self::WriteConflict(Box::new(conflict.into())),
            Of::TxnLockNotFound(wire::TxnAndKey { start_ts, key }) => Self::TxnLockNotFound { start_ts, key },
            Of::Committed(wire::Committed { start_ts, commit_ts }) => Self::Committed { start_ts, commit_ts },
            Of::TxnNotFound(wire::TxnAndKey { start_ts, key }) => Self::TxnNotFound { start_ts, key },
            Of::AlreadyExist(key) => Self::AlreadyExist { key },
            Of::CommitTsExpired(wire::CommitTsExpired { start_ts, commit_ts, min_commit_ts }) => {
                Self::CommitTsExpired { start_ts, commit_ts, min_commit_ts }
            }
            Of::PrimaryMismatch(primary) => Self::PrimaryMismatch { primary },
            Of::GcTooEarly(wire::GcTooEarly { read_ts, safe_point }) => {
                Self::GcTooEarly { read_ts, safe_point }
            }
            Of::WouldBlockPipeline(_) => Self::WouldBlockPipeline,
            Of::MemberChange(why) => Self::MemberChange(why.try_into()?),
            Of::Closed(_) => Self::Closed,
            Of::Poisoned(why) => Self::Poisoned(why.into()),
            Of::Corrupt(what) => Self::Corrupt(what.into()),
            Of::Engine(what) => Self::Engine(what.into()),
            Of::Dropped(_) => Self::Dropped,
            Of::Refused(why) => Self::Refused(why.into()),
            Of::Unreachable(why) => Self::Unreachable(why.into()),
        })
    }
}
