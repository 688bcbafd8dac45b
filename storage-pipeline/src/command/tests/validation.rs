//! What malformed commands get, before anything is latched or read.

use super::super::*;
use crate::{
    command::testing::{bytes, delete, lock, prewrite, put},
    config::Config,
    engine::Engine,
    engine::memory::MemoryEngine,
};

fn small() -> Config {
    Config { max_key_bytes: 4, max_value_bytes: 6, ..Config::new("unused") }
}

fn get(key: &str, read_ts: u64) -> Command {
    Get { key: key.into(), read_ts, bypass_locks: vec![] }.into()
}

fn scan() -> Scan {
    Scan {
        start_key: vec![],
        end_key: vec![],
        limit: 1,
        read_ts: 1,
        reverse: false,
        key_only: false,
        bypass_locks: vec![],
    }
}

fn status() -> CheckTxnStatus {
    CheckTxnStatus {
        primary: b"k".to_vec(),
        lock_ts: 5,
        caller_start_ts: 0,
        current_ts: 0,
        rollback_if_not_exist: true,
    }
}

/// Every kind of command, well formed.
fn all() -> Vec<Command> {
    let key = || b"k".to_vec();
    vec![
        prewrite(b"k", 5, vec![put("k", "v")]).into(),
        Commit { keys: vec![key()], start_ts: 5, commit_ts: 6 }.into(),
        Rollback { keys: vec![key()], start_ts: 5 }.into(),
        Cleanup { key: key(), start_ts: 5, current_ts: 0 }.into(),
        status().into(),
        ResolveLock { start_ts: 5, commit_ts: 0, keys: vec![key()] }.into(),
        TxnHeartBeat { primary: key(), start_ts: 5, advise_ttl_ms: 0 }.into(),
        get("k", 1),
        BatchGet { keys: vec![key()], read_ts: 1, bypass_locks: vec![] }.into(),
        scan().into(),
        ScanLock { max_ts: u64::MAX, start_key: vec![], end_key: vec![], limit: 1 }.into(),
        Gc { safe_point: 1, keys: vec![] }.into(),
        ScanGcKeys { safe_point: 1, start_key: vec![], end_key: vec![], limit: 1 }.into(),
        RawPut { key: key(), value: vec![] }.into(),
        RawGet { key: key() }.into(),
        RawDelete { key: key() }.into(),
        RawScan { start_key: vec![], end_key: vec![], limit: 1, reverse: false, key_only: false }.into(),
        RawCompareAndSwap { key: key(), previous: None, value: vec![] }.into(),
        AllocateTimestamps { at_least: 0, window: 1 }.into(),
    ]
}

#[test]
fn every_kind_is_valid_when_well_formed_and_latches_exactly_when_it_writes() {
    let mut names: Vec<_> = all().iter().map(Command::name).collect();
    names.dedup();
    assert_eq!(names.len(), 19);
    for command in all() {
        assert_eq!(command.validate(&small()), Ok(()), "{command:?}");
        assert_eq!(command.is_read(), command.latch_hashes().is_empty(), "{command:?}");
        assert!(command.size_bytes() > 0 && command.size_bytes() < 1000, "{command:?}");
    }
}

#[test]
fn every_fault_is_named_by_its_field() {
    let long = || "kkkkk";
    let bad: Vec<(&str, Command)> = vec![
        ("mutations", prewrite(b"k", 5, vec![]).into()),
        ("primary", prewrite(b"", 5, vec![put("k", "v")]).into()),
        ("primary", prewrite(b"kkkkk", 5, vec![put("k", "v")]).into()),
        ("mutations.key", prewrite(b"k", 5, vec![put("", "v")]).into()),
        ("mutations.key", prewrite(b"k", 5, vec![delete(long())]).into()),
        ("mutations.key", prewrite(b"k", 5, vec![put("k", "v"), put("l", "v"), lock("k")]).into()),
        ("mutations.value", prewrite(b"k", 5, vec![put("k", "vvvvvvv")]).into()),
        ("start_ts", prewrite(b"k", 0, vec![put("k", "v")]).into()),
        ("start_ts", prewrite(b"k", u64::MAX, vec![put("k", "v")]).into()),
        ("min_commit_ts", Prewrite { min_commit_ts: 5, ..prewrite(b"k", 5, vec![lock("k")]) }.into()),
        ("min_commit_ts", Prewrite { min_commit_ts: u64::MAX, ..prewrite(b"k", 5, vec![lock("k")]) }.into()),
        ("keys", Commit { keys: vec![], start_ts: 5, commit_ts: 6 }.into()),
        ("keys", Commit { keys: bytes(&["k", ""]), start_ts: 5, commit_ts: 6 }.into()),
        ("start_ts", Commit { keys: bytes(&["k"]), start_ts: 0, commit_ts: 6 }.into()),
        ("commit_ts", Commit { keys: bytes(&["k"]), start_ts: 5, commit_ts: 5 }.into()),
        ("commit_ts", Commit { keys: bytes(&["k"]), start_ts: 5, commit_ts: u64::MAX }.into()),
        ("keys", Rollback { keys: vec![], start_ts: 5 }.into()),
        ("start_ts", Rollback { keys: bytes(&["k"]), start_ts: 0 }.into()),
        ("key", Cleanup { key: vec![], start_ts: 5, current_ts: 0 }.into()),
        ("start_ts", Cleanup { key: b"k".to_vec(), start_ts: 0, current_ts: 0 }.into()),
        ("primary", CheckTxnStatus { primary: vec![], ..status() }.into()),
        ("lock_ts", CheckTxnStatus { lock_ts: 0, ..status() }.into()),
        ("caller_start_ts", CheckTxnStatus { caller_start_ts: u64::MAX, ..status() }.into()),
        ("current_ts", CheckTxnStatus { current_ts: u64::MAX, ..status() }.into()),
        ("keys", ResolveLock { start_ts: 5, commit_ts: 0, keys: vec![] }.into()),
        ("commit_ts", ResolveLock { start_ts: 5, commit_ts: 4, keys: bytes(&["k"]) }.into()),
        ("primary", TxnHeartBeat { primary: vec![], start_ts: 5, advise_ttl_ms: 1 }.into()),
        ("key", get("", 1)),
        ("key", get(long(), 1)),
        ("read_ts", get("k", 0)),
        ("read_ts", get("k", u64::MAX)),
        ("keys", BatchGet { keys: vec![], read_ts: 1, bypass_locks: vec![] }.into()),
        ("limit", Scan { limit: 0, ..scan() }.into()),
        ("start_key", Scan { start_key: vec![1; 6], ..scan() }.into()),
        ("end_key", Scan { end_key: vec![1; 6], ..scan() }.into()),
        ("read_ts", Scan { read_ts: 0, ..scan() }.into()),
        ("limit", ScanLock { max_ts: 1, start_key: vec![], end_key: vec![], limit: 0 }.into()),
        ("safe_point", Gc { safe_point: 0, keys: vec![] }.into()),
        ("safe_point", Gc { safe_point: u64::MAX, keys: vec![] }.into()),
        ("keys", Gc { safe_point: 1, keys: bytes(&[""]) }.into()),
        ("limit", ScanGcKeys { safe_point: 1, start_key: vec![], end_key: vec![], limit: 0 }.into()),
        ("key", RawPut { key: vec![], value: vec![] }.into()),
        ("value", RawPut { key: vec![1], value: vec![1; 7] }.into()),
        ("key", RawGet { key: vec![1; 5] }.into()),
        ("key", RawDelete { key: vec![] }.into()),
        ("previous", RawCompareAndSwap { key: vec![1], previous: Some(vec![1; 7]), value: vec![] }.into()),
        (
            "limit",
            RawScan { start_key: vec![], end_key: vec![], limit: 0, reverse: false, key_only: false }.into(),
        ),
        ("window", AllocateTimestamps { at_least: 0, window: 0 }.into()),
        ("at_least", AllocateTimestamps { at_least: u64::MAX, window: 1 }.into()),
    ];
    for (field, command) in bad {
        let error = command.validate(&small()).expect_err("it is malformed");
        assert!(error.to_string().starts_with(&format!("{field}:")), "{command:?}: {error}");
        // The scheduler asks for these before it validates, and must not be brought down by them.
        let _ = command.latch_hashes();
        let _ = command.size_bytes();
    }
}

#[test]
fn malformed_commands_do_not_bring_down_a_worker_either() {
    let snapshot = MemoryEngine::default().snapshot();
    let _ = Command::from(prewrite(b"", u64::MAX, vec![])).process(&*snapshot);
    let _ = Command::from(Commit { keys: vec![], start_ts: 9, commit_ts: 0 }).process(&*snapshot);
    let _ = Command::from(Scan { start_key: vec![2], end_key: vec![1], ..scan() }).process(&*snapshot);
    let _ = Command::from(AllocateTimestamps { at_least: u64::MAX, window: u64::MAX }).process(&*snapshot);
}

#[test]
fn equal_keys_meet_and_the_spaces_of_keys_stay_apart() {
    let txn = |keys| Command::from(Rollback { keys: bytes(keys), start_ts: 1 }).latch_hashes();
    assert_eq!(txn(&["b", "a", "b"]), txn(&["a", "b"]));
    assert!(txn(&["a", "b", "c"]).is_sorted());
    assert_eq!(txn(&["k"]), Command::from(prewrite(b"p", 1, vec![lock("k")])).latch_hashes());
    assert_ne!(txn(&["k"]), Command::from(RawDelete { key: b"k".to_vec() }).latch_hashes());
    let gc = |safe_point| Command::from(Gc { safe_point, keys: bytes(&["k"]) }).latch_hashes();
    assert_eq!((gc(1).len(), gc(1)), (2, gc(2)), "garbage collections wait for each other");
    assert_ne!(
        *Command::from(AllocateTimestamps { at_least: 0, window: 1 }).latch_hashes(),
        *Command::from(Gc { safe_point: 1, keys: vec![] }).latch_hashes()
    );
}

#[test]
fn a_long_primary_key_counts_with_every_lock_that_carries_it() {
    let mutations: Vec<_> = (0..100).map(|n| lock(&n.to_string())).collect();
    let short = prewrite(b"p", 1, mutations.clone());
    let long = prewrite(&[b'p'; 1001], 1, mutations);
    assert_eq!(Command::from(long).size_bytes() - Command::from(short).size_bytes(), 100_000);
}
