//! What commands yield, on the wire and back.

use super::{
    Malformed, same_fields,
    wire::{self, response::Response as Of, txn_status::Status},
};
use crate::{
    command::{CompareAndSwapResult, GcKeys, GcResult, KvPair, Response, TimestampRange, TxnStatus},
    error::LockInfo,
};

same_fields! {
    KvPair { key, value }
    GcResult { safe_point, removed, unfinished }
    GcKeys { keys, next_start_key }
    CompareAndSwapResult { succeeded, previous }
    TimestampRange { first, limit }
}

impl From<TxnStatus> for wire::TxnStatus {
    fn from(status: TxnStatus) -> Self {
        let status = match status {
            TxnStatus::RolledBack => Status::RolledBack(wire::Nothing {}),
            TxnStatus::TtlExpire => Status::TtlExpire(wire::Nothing {}),
            TxnStatus::LockNotExist => Status::LockNotExist(wire::Nothing {}),
            TxnStatus::Committed { commit_ts } => Status::Committed(commit_ts),
            TxnStatus::Uncommitted { lock, min_commit_ts_pushed } => {
                Status::Uncommitted(wire::Uncommitted { lock: Some(lock.into()), min_commit_ts_pushed })
            }
        };
        Self { status: Some(status) }
    }
}

impl TryFrom<wire::TxnStatus> for TxnStatus {
    type Error = Malformed;

    fn try_from(status: wire::TxnStatus) -> Result<Self, Malformed> {
        Ok(match status.status.ok_or_else(|| Malformed::unset("txn_status.status"))? {
            Status::RolledBack(_) => Self::RolledBack,
            Status::TtlExpire(_) => Self::TtlExpire,
            Status::LockNotExist(_) => Self::LockNotExist,
            Status::Committed(commit_ts) => Self::Committed { commit_ts },
            Status::Uncommitted(wire::Uncommitted { lock, min_commit_ts_pushed }) => {
                let lock = lock.ok_or_else(|| Malformed::unset("txn_status.uncommitted.lock"))?;
                Self::Uncommitted { lock: lock.into(), min_commit_ts_pushed }
            }
        })
    }
}

impl From<Response> for wire::Response {
    fn from(response: Response) -> Self {
        let response = match response {
            Response::Done => Of::Done(wire::Nothing {}),
            Response::TxnStatus(status) => Of::TxnStatus(status.into()),
            Response::TtlMs(ttl_ms) => Of::TtlMs(ttl_ms),
            Response::Value(value) => Of::Value(wire::Value { value }),
            Response::Pairs(pairs) => Of::Pairs(wire::Pairs { pairs: all(pairs) }),
            Response::Locks(locks) => Of::Locks(wire::Locks { locks: all(locks) }),
            Response::Gc(result) => Of::Gc(result.into()),
            Response::GcKeys(keys) => Of::GcKeys(keys.into()),
            Response::CompareAndSwap(result) => Of::CompareAndSwap(result.into()),
            Response::Timestamps(range) => Of::Timestamps(range.into()),
        };
        Self { response: Some(response) }
    }
}

impl TryFrom<wire::Response> for Response {
    type Error = Malformed;

    fn try_from(response: wire::Response) -> Result<Self, Malformed> {
        Ok(match response.response.ok_or_else(|| Malformed::unset("response"))? {
            Of::Done(_) => Self::Done,
            Of::TxnStatus(status) => Self::TxnStatus(status.try_into()?),
            Of::TtlMs(ttl_ms) => Self::TtlMs(ttl_ms),
            Of::Value(value) => Self::Value(value.value),
            Of::Pairs(pairs) => Self::Pairs(all(pairs.pairs)),
            Of::Locks(locks) => Self::Locks(all::<_, LockInfo>(locks.locks)),
            Of::Gc(result) => Self::Gc(result.into()),
            Of::GcKeys(keys) => Self::GcKeys(keys.into()),
            Of::CompareAndSwap(result) => Self::CompareAndSwap(result.into()),
            Of::Timestamps(range) => Self::Timestamps(range.into()),
        })
    }
}

fn all<T: Into<U>, U>(list: Vec<T>) -> Vec<U> {
    list.into_iter().map(Into::into).collect()
}
