//! What commands yield. `Request::output` takes the part that belongs to the command.

use crate::error::LockInfo;

/// The answer of a command of any kind, as the pipeline carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// It is done, and there is nothing more to say.
    Done,
    /// The fate of a transaction.
    TxnStatus(TxnStatus),
    /// The time to live of a lock in milliseconds, counted from the physical part of its start timestamp.
    TtlMs(u64),
    /// The value of a key, if it has one.
    Value(Option<Vec<u8>>),
    /// Keys with their values, in the order in which they were asked for.
    Pairs(Vec<KvPair>),
    /// Locks, in the order of their keys.
    Locks(Vec<LockInfo>),
    /// What garbage collection removed.
    Gc(GcResult),
    /// Keys that have something to remove.
    GcKeys(GcKeys),
    /// What a compare-and-swap found.
    CompareAndSwap(CompareAndSwapResult),
    /// Reserved timestamps.
    Timestamps(TimestampRange),
}

/// A key and its value, as the user gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KvPair {
    /// The key.
    pub key: Vec<u8>,
    /// The value; empty where only keys were asked for.
    pub value: Vec<u8>,
}

/// The fate of a transaction, as its primary key tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxnStatus {
    /// It had been rolled back before.
    RolledBack,
    /// Its lock had expired, so it was rolled back now.
    TtlExpire,
    /// There was no trace of it, so it was rolled back now: a prewrite that arrives later is refused.
    LockNotExist,
    /// It is committed.
    Committed {
        /// Its commit timestamp.
        commit_ts: u64,
    },
    /// It is alive.
    Uncommitted {
        /// Its primary lock.
        lock: LockInfo,
        /// Whether it can no longer commit at or below the timestamp of the caller, who may therefore read past its
        /// locks, on secondary keys too: see `bypass_locks` of the reads.
        min_commit_ts_pushed: bool,
    },
}

impl TxnStatus {
    /// Whether the transaction will never commit.
    #[must_use]
    pub const fn is_rolled_back(&self) -> bool {
        matches!(self, Self::RolledBack | Self::TtlExpire | Self::LockNotExist)
    }
}

/// What one round of garbage collection did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcResult {
    /// The safe point that holds now.
    pub safe_point: u64,
    /// Write records that were removed.
    pub removed: u64,
    /// Keys that have more to remove than one command takes; ask again with these.
    pub unfinished: Vec<Vec<u8>>,
}

/// A page of keys that have something to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcKeys {
    /// The keys, in their order.
    pub keys: Vec<Vec<u8>>,
    /// Where the next page starts; `None` where the range is done.
    pub next_start_key: Option<Vec<u8>>,
}

/// What a compare-and-swap found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareAndSwapResult {
    /// Whether the value was the expected one, and therefore set.
    pub succeeded: bool,
    /// The value before, if there was one.
    pub previous: Option<Vec<u8>>,
}

/// Timestamps that nobody else gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampRange {
    /// The first of them.
    pub first: u64,
    /// The first after them.
    pub limit: u64,
}
