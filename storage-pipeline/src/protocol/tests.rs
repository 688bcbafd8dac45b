//! Whatever is said arrives as it was meant, and whatever else arrives is refused by its field.

use proptest::{collection::vec, option, prelude::*};
use prost::Message;

use super::{Malformed, Refusal, Reply, wire};
use crate::{
    command::*,
    error::{Cause, Error, InvalidCommand, LockInfo, Outcome, WriteConflict},
    members::MemberChangeRefused,
    region::{CurrentRegion, Region, RegionEpoch},
};

fn bytes() -> BoxedStrategy<Vec<u8>> {
    vec(any::<u8>(), 0..6).boxed()
}

fn lists() -> BoxedStrategy<Vec<Vec<u8>>> {
    vec(bytes(), 0..4).boxed()
}

fn mutations() -> impl Strategy<Value = Mutation> {
    (0..5, bytes(), bytes()).prop_map(|(kind, key, value)| match kind {
        0 => Mutation::Put { key, value },
        1 => Mutation::Insert { key, value },
        2 => Mutation::Delete { key },
        3 => Mutation::Lock { key },
        _ => Mutation::CheckNotExists { key },
    })
}

prop_compose! {
    /// One of the commands, by its place, with fields of any values.
    fn commands()(
        which in 0..19,
        (key, value, end_key) in (bytes(), bytes(), bytes()),
        keys in lists(),
        previous in option::of(bytes()),
        mutations in vec(mutations(), 0..4),
        bypass_locks in vec(any::<u64>(), 0..3),
        [a, b, c] in any::<[u64; 3]>(),
        limit in any::<usize>(),
        [reverse, key_only] in any::<[bool; 2]>(),
    ) -> Command {
        let start_key = key.clone();
        match which {
            0 => Prewrite {
                mutations, primary: key, start_ts: a, lock_ttl_ms: b, txn_size: c, min_commit_ts: a ^ b,
            }.into(),
            1 => Commit { keys, start_ts: a, commit_ts: b }.into(),
            2 => Rollback { keys, start_ts: a }.into(),
            3 => Cleanup { key, start_ts: a, current_ts: b }.into(),
            4 => CheckTxnStatus {
                primary: key, lock_ts: a, caller_start_ts: b, current_ts: c, rollback_if_not_exist: reverse,
            }.into(),
            5 => ResolveLock { start_ts: a, commit_ts: b, keys }.into(),
            6 => TxnHeartBeat { primary: key, start_ts: a, advise_ttl_ms: b }.into(),
            7 => Get { key, read_ts: a, bypass_locks }.into(),
            8 => BatchGet { keys, read_ts: a, bypass_locks }.into(),
            9 => Scan { start_key, end_key, limit, read_ts: a, reverse, key_only, bypass_locks }.into(),
            10 => ScanLock { max_ts: a, start_key, end_key, limit }.into(),
            11 => Gc { safe_point: a, keys }.into(),
            12 => ScanGcKeys { safe_point: a, start_key, end_key, limit }.into(),
            13 => RawPut { key, value }.into(),
            14 => RawGet { key }.into(),
            15 => RawDelete { key }.into(),
            16 => RawScan { start_key, end_key, limit, reverse, key_only }.into(),
            17 => RawCompareAndSwap { key, previous, value }.into(),
            _ => AllocateTimestamps { at_least: a, window: b }.into(),
        }
    }
}

prop_compose! {
    fn locks()(key in bytes(), primary in bytes(), [a, b, c, d] in any::<[u64; 4]>()) -> LockInfo {
        LockInfo { key, primary, start_ts: a, ttl_ms: b, txn_size: c, min_commit_ts: d }
    }
}

prop_compose! {
    fn responses()(
        which in 0..14,
        keys in lists(),
        value in option::of(bytes()),
        lock in locks(),
        [a, b] in any::<[u64; 2]>(),
        flag in any::<bool>(),
    ) -> Response {
        match which {
            0 => Response::Done,
            1 => Response::TxnStatus(TxnStatus::RolledBack),
            2 => Response::TxnStatus(TxnStatus::TtlExpire),
            3 => Response::TxnStatus(TxnStatus::LockNotExist),
            4 => Response::TxnStatus(TxnStatus::Committed { commit_ts: a }),
            5 => Response::TxnStatus(TxnStatus::Uncommitted { lock, min_commit_ts_pushed: flag }),
            6 => Response::TtlMs(a),
            7 => Response::Value(value),
            8 => Response::Pairs(keys.into_iter().map(|key| KvPair { value: key.clone(), key }).collect()),
            9 => Response::Locks(vec![lock]),
            10 => Response::Gc(GcResult { safe_point: a, removed: b, unfinished: keys }),
            11 => Response::GcKeys(GcKeys { keys, next_start_key: value }),
            12 => Response::CompareAndSwap(CompareAndSwapResult { succeeded: flag, previous: value }),
            _ => Response::Timestamps(TimestampRange { first: a, limit: b }),
        }
    }
}

prop_compose! {
    fn errors()(
        which in 0..34,
        (key, primary) in (bytes(), bytes()),
        lock in locks(),
        text in "[ -~]{0,8}",
        [a, b, c] in any::<[u64; 3]>(),
        leader in option::of(any::<u64>()),
        refused in 0..9,
    ) -> Error {
        let (why, field) = (text.as_str().into(), text.clone().into());
        match which {
            0 => Error::InvalidCommand(InvalidCommand::EmptyKey { field }),
            1 => Error::InvalidCommand(InvalidCommand::TooLarge { field, size: a as usize, limit: b as usize }),
            2 => Error::InvalidCommand(InvalidCommand::EmptyList { field }),
            3 => Error::InvalidCommand(InvalidCommand::DuplicateKey { field, key }),
            4 => Error::InvalidCommand(InvalidCommand::TimestampOrder { field, value: a, must_exceed: b }),
            5 => Error::InvalidCommand(InvalidCommand::OutOfRange { field, value: a, range: text.into() }),
            6 => Error::SchedTooBusy,
            7 => Error::DeadlineExceeded,
            8 => Error::NotLeader { leader },
            9 => Error::StaleCommand,
            10 => Error::KeyNotInRegion { end_key: key.clone(), key, region: a, start_key: primary },
            11 => Error::KeyIsLocked(Box::new(lock)),
            12 => Error::WriteConflict(Box::new(WriteConflict {
                key, primary, start_ts: a, conflict_start_ts: b, conflict_commit_ts: c,
            })),
            13 => Error::TxnLockNotFound { start_ts: a, key },
            14 => Error::Committed { start_ts: a, commit_ts: b },
            15 => Error::TxnNotFound { start_ts: a, key },
            16 => Error::AlreadyExist { key },
            17 => Error::CommitTsExpired { start_ts: a, commit_ts: b, min_commit_ts: c },
            18 => Error::PrimaryMismatch { primary },
            19 => Error::GcTooEarly { read_ts: a, safe_point: b },
            20 => Error::WouldBlockPipeline,
            21 => Error::MemberChange(match refused {
                0 => MemberChangeRefused::Nothing,
                1 => MemberChangeRefused::ZeroId,
                2 => MemberChangeRefused::NamedTwice { replica: a },
                3 => MemberChangeRefused::Unknown { replica: a },
                4 => MemberChangeRefused::AlreadyThere { replica: a },
                5 => MemberChangeRefused::NoVoterLeft,
                6 => MemberChangeRefused::Pending,
                7 => MemberChangeRefused::Alone,
                _ => MemberChangeRefused::NoVoter { replica: a },
            }),
            22 => Error::Closed,
            23 => Error::Poisoned(why),
            24 => Error::Corrupt(why),
            25 => Error::Engine(why),
            26 => Error::Dropped,
            27 => Error::Refused(why),
            28 => Error::RegionNotFound { region: a },
            29 => Error::RegionNotNamed,
            30 => Error::EpochNotMatch(Box::new(CurrentRegion {
                region: Region { id: a, start_key: key, end_key: primary },
                epoch: RegionEpoch { conf_ver: b, version: c },
            })),
            31 => Error::EpochPending { region: a },
            _ => Error::Unreachable(why),
        }
    }
}

fn causes() -> impl Strategy<Value = Cause> {
    (0..7, "[ -~]{0,8}").prop_map(|(which, text)| match which {
        0 => Cause::DeadlineExceeded,
        1 => Cause::LeadershipLost,
        2 => Cause::SnapshotInstalled,
        3 => Cause::Closed,
        4 => Cause::Poisoned(text.into()),
        5 => Cause::Dropped,
        _ => Cause::ConnectionLost(text.into()),
    })
}

fn refusals() -> impl Strategy<Value = Refusal> {
    (0..3, any::<u32>(), "[ -~]{0,8}").prop_map(|(which, number, text)| match which {
        0 => Refusal::ProtocolVersion(number),
        1 => Refusal::Cluster(number.into()),
        _ => Refusal::Malformed(Malformed { field: text.clone(), what: text }),
    })
}

fn replies() -> impl Strategy<Value = Reply> {
    let outcomes = prop_oneof![
        responses().prop_map(|response| Ok(Outcome::Applied(response))),
        errors().prop_map(|error| Ok(Outcome::NotExecuted(error))),
        causes().prop_map(|cause| Ok(Outcome::Indeterminate(cause))),
        refusals().prop_map(Err),
    ];
    (outcomes, option::of("[a-z]{1,8}:[0-9]{1,4}"))
        .prop_map(|(outcome, leader_address)| Reply { outcome, leader_address })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_command_arrives_as_it_was_sent(command in commands()) {
        let sent = wire::Command::from(command.clone()).encode_to_vec();
        let arrived = wire::Command::decode(sent.as_slice()).unwrap();
        prop_assert_eq!(Command::try_from(arrived).unwrap(), command);
    }

    #[test]
    fn a_reply_arrives_as_it_was_sent(reply in replies()) {
        let sent = wire::Reply::from(reply.clone()).encode_to_vec();
        let arrived = wire::Reply::decode(sent.as_slice()).unwrap();
        prop_assert_eq!(Reply::try_from(arrived).unwrap(), reply);
    }

    #[test]
    fn a_request_or_reply_that_was_damaged_on_its_way_is_another_one_or_refused(
        command in commands(),
        reply in replies(),
        at in any::<prop::sample::Index>(),
        bits in 1_u8..,
        is_cut in any::<bool>(),
    ) {
        let damage = |mut bytes: Vec<u8>| {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                if is_cut { bytes.truncate(at) } else { bytes[at] ^= bits }
            }
            bytes
        };
        // Neither decoder may panic, and what they let through says the same when it is sent on.
        if let Ok(Ok(command)) = wire::Command::decode(damage(wire::Command::from(command).encode_to_vec()).as_slice())
            .map(Command::try_from)
        {
            prop_assert_eq!(Command::try_from(wire::Command::from(command.clone())), Ok(command));
        }
        if let Ok(Ok(reply)) = wire::Reply::decode(damage(wire::Reply::from(reply).encode_to_vec()).as_slice())
            .map(Reply::try_from)
        {
            prop_assert_eq!(Reply::try_from(wire::Reply::from(reply.clone())), Ok(reply));
        }
    }
}

#[test]
fn what_means_nothing_is_refused_by_its_field() {
    let refused = |command| Command::try_from(wire::Command { command }).unwrap_err().to_string();
    let unset = "it is not set, or by something that is not known here";
    assert_eq!(refused(None), format!("command: {unset}"));
    let prewrite = |kind, value: &[u8]| {
        let mutations = vec![wire::Mutation { kind, key: b"k".to_vec(), value: value.to_vec() }];
        refused(Some(wire::command::Command::Prewrite(wire::Prewrite { mutations, ..Default::default() })))
    };
    assert_eq!(prewrite(0, b""), "mutations.kind: 0 is not known here");
    assert_eq!(prewrite(6, b""), "mutations.kind: 6 is not known here");
    assert_eq!(prewrite(3, b"v"), "mutations.value: there is one, where the mutation sets none");
    let reply = |outcome| {
        let reply = wire::Reply { outcome: Some(outcome), ..Default::default() };
        Reply::try_from(reply).unwrap_err().to_string()
    };
    use wire::reply::Outcome as Of;
    assert_eq!(reply(Of::Applied(wire::Response::default())), format!("response: {unset}"));
    assert_eq!(reply(Of::NotExecuted(wire::Error::default())), format!("error: {unset}"));
    assert_eq!(reply(Of::Indeterminate(wire::Cause::default())), format!("cause: {unset}"));
    assert_eq!(reply(Of::Refused(wire::Refusal::default())), format!("refused.why: {unset}"));
}
