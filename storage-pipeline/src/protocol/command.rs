//! Commands, and the regions that they name, on the wire and back. A command from the wire is well-formed, and not yet
//! validated.

use super::{
    Malformed, same_fields,
    wire::{self, command::Command as Of, mutation::Kind},
};
use crate::command::{
    AllocateTimestamps, BatchGet, CheckTxnStatus, Cleanup, Command, Commit, Gc, Get, Mutation, Prewrite,
    RawCompareAndSwap, RawDelete, RawGet, RawPut, RawScan, ResolveLock, Rollback, Scan, ScanGcKeys, ScanLock,
    TxnHeartBeat,
};
use crate::region::{RegionContext, RegionEpoch};

same_fields! {
    RegionEpoch { conf_ver, version }
    Commit { keys, start_ts, commit_ts }
    Rollback { keys, start_ts }
    Cleanup { key, start_ts, current_ts }
    CheckTxnStatus { primary, lock_ts, caller_start_ts, current_ts, rollback_if_not_exist }
    ResolveLock { start_ts, commit_ts, keys }
    TxnHeartBeat { primary, start_ts, advise_ttl_ms }
    Get { key, read_ts, bypass_locks }
    BatchGet { keys, read_ts, bypass_locks }
    Scan { start_key, end_key, read_ts, reverse, key_only, bypass_locks; limit }
    ScanLock { max_ts, start_key, end_key; limit }
    Gc { safe_point, keys }
    ScanGcKeys { safe_point, start_key, end_key; limit }
    RawPut { key, value }
    RawGet { key }
    RawDelete { key }
    RawScan { start_key, end_key, reverse, key_only; limit }
    RawCompareAndSwap { key, previous, value }
    AllocateTimestamps { at_least, window }
}

impl From<RegionContext> for wire::RegionContext {
    fn from(RegionContext { id, epoch }: RegionContext) -> Self {
        Self { id, epoch: epoch.map(wire::RegionEpoch::from) }
    }
}

impl From<wire::RegionContext> for RegionContext {
    fn from(wire::RegionContext { id, epoch }: wire::RegionContext) -> Self {
        Self { id, epoch: epoch.map(RegionEpoch::from) }
    }
}

impl From<Mutation> for wire::Mutation {
    fn from(mutation: Mutation) -> Self {
        let (kind, key, value) = match mutation {
            Mutation::Put { key, value } => (Kind::Put, key, value),
            Mutation::Insert { key, value } => (Kind::Insert, key, value),
            Mutation::Delete { key } => (Kind::Delete, key, Vec::new()),
            Mutation::Lock { key } => (Kind::Lock, key, Vec::new()),
            Mutation::CheckNotExists { key } => (Kind::CheckNotExists, key, Vec::new()),
        };
        Self { kind: kind.into(), key, value }
    }
}

impl TryFrom<wire::Mutation> for Mutation {
    type Error = Malformed;

    fn try_from(wire::Mutation { kind, key, value }: wire::Mutation) -> Result<Self, Malformed> {
        let of = Kind::try_from(kind).unwrap_or(Kind::Unspecified);
        let mutation = match of {
            Kind::Unspecified => return Err(Malformed::unknown("mutations.kind", kind)),
            Kind::Put => return Ok(Self::Put { key, value }),
            Kind::Insert => return Ok(Self::Insert { key, value }),
            Kind::Delete => Self::Delete { key },
            Kind::Lock => Self::Lock { key },
            Kind::CheckNotExists => Self::CheckNotExists { key },
        };
        if value.is_empty() {
            return Ok(mutation);
        }
        let what = "there is one, where the mutation sets none".to_owned();
        Err(Malformed { field: "mutations.value".to_owned(), what })
    }
}

impl From<Prewrite> for wire::Prewrite {
    fn from(prewrite: Prewrite) -> Self {
        let Prewrite { mutations, primary, start_ts, lock_ttl_ms, txn_size, min_commit_ts } = prewrite;
        let mutations = mutations.into_iter().map(wire::Mutation::from).collect();
        Self { mutations, primary, start_ts, lock_ttl_ms, txn_size, min_commit_ts }
    }
}

impl TryFrom<wire::Prewrite> for Prewrite {
    type Error = Malformed;

    fn try_from(prewrite: wire::Prewrite) -> Result<Self, Malformed> {
        let wire::Prewrite { mutations, primary, start_ts, lock_ttl_ms, txn_size, min_commit_ts } = prewrite;
        let mutations = mutations.into_iter().map(Mutation::try_from).collect::<Result<_, _>>()?;
        Ok(Self { mutations, primary, start_ts, lock_ttl_ms, txn_size, min_commit_ts })
    }
}

/// Conversions of all commands in both directions, by their names.
macro_rules! all_commands {
    ($($name:ident)*) => {
        impl From<Command> for wire::Command {
            fn from(command: Command) -> Self {
                Self { command: Some(match command { $(Command::$name(command) => Of::$name(command.into()),)* }) }
            }
        }

        impl TryFrom<wire::Command> for Command {
            type Error = Malformed;

            fn try_from(command: wire::Command) -> Result<Self, Malformed> {
                Ok(match command.command.ok_or_else(|| Malformed::unset("command"))? {
                    // Most conversions cannot fail, and say so with another type of error.
                    $(Of::$name(command) => Command::$name($name::try_from(command).map_err(Malformed::from)?),)*
                })
            }
        }
    };
}

all_commands! {
    Prewrite Commit Rollback Cleanup CheckTxnStatus ResolveLock TxnHeartBeat Get BatchGet Scan ScanLock Gc ScanGcKeys RawPut
    RawGet RawDelete RawScan RawCompareAndSwap AllocateTimestamps
}

impl From<std::convert::Infallible> for Malformed {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
