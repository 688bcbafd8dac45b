//! Garbage collection: what goes, what stays, and who is kept out afterwards.

use crate::{
    Error, InvalidCommand,
    command::{AllocateTimestamps, Cleanup, Commit, Gc, GcKeys, GcResult, Rollback, ScanGcKeys, testing::*},
    engine::Cf,
    txn::keys::split_ts,
};

fn gc(store: &Store, safe_point: u64, keys: &[&str]) -> Result<GcResult, Error> {
    store.run(Gc { safe_point, keys: bytes(keys) })
}

fn timestamps(store: &Store) -> Vec<u64> {
    store.contents_of(Cf::Write).iter().map(|(_, key, _)| split_ts(key).unwrap().1).collect()
}

#[test]
fn what_a_read_at_the_safe_point_sees_stays_and_what_is_older_goes() {
    let store = Store::default();
    store.must_write(10, 11, vec![put("k", [1; 300])]);
    store.must_write(20, 21, vec![put("k", [2; 300])]);
    store.must_write(30, 31, vec![lock("k")]);
    store.must_write(40, 41, vec![put("k", [4; 300])]);
    let result = gc(&store, 35, &["k", "absent"]).unwrap();
    assert_eq!(result, GcResult { safe_point: 35, removed: 2, unfinished: vec![] });
    assert_eq!(timestamps(&store), [41, 21]);
    assert_eq!(store.contents_of(Cf::Default).len(), 2, "the long value went with its version");
    assert_eq!(store.must_get("k", 35), Some(vec![2; 300]));
    assert_eq!(store.get("k", 34), Err(Error::GcTooEarly { read_ts: 34, safe_point: 35 }));
}

#[test]
fn a_deletion_at_or_below_the_safe_point_goes_with_all_it_hides() {
    let store = Store::default();
    store.must_write(10, 11, vec![put("k", "v")]);
    store.must_write(20, 21, vec![delete("k")]);
    assert_eq!(gc(&store, 20, &["k"]).unwrap().removed, 0);
    assert_eq!(gc(&store, 21, &["k"]).unwrap().removed, 2);
    assert_eq!(timestamps(&store), [0; 0]);
    assert_eq!(store.must_get("k", 21), None);
}

#[test]
fn the_safe_point_never_falls() {
    let store = Store::default();
    store.must_write(10, 11, vec![put("k", "1")]);
    store.must_write(20, 21, vec![put("k", "2")]);
    assert_eq!(gc(&store, 30, &[]).unwrap().safe_point, 30);
    assert_eq!(gc(&store, 5, &["k"]).unwrap(), GcResult { safe_point: 30, removed: 1, unfinished: vec![] });
    assert!(matches!(store.get("k", 29), Err(Error::GcTooEarly { safe_point: 30, .. })));
}

#[test]
fn pending_locks_from_below_stop_it() {
    let store = Store::default();
    store.must_write(10, 11, vec![put("k", "1")]);
    store.must_write(20, 21, vec![put("k", "2")]);
    store.prewrite(30, vec![put("p", "v")]).unwrap();
    let before = store.contents();
    assert!(matches!(gc(&store, 30, &["k"]), Err(Error::KeyIsLocked(lock)) if lock.key == b"p"));
    assert_eq!(store.contents(), before);
    assert_eq!(gc(&store, 29, &["k", "p"]).unwrap().removed, 1, "a later lock does not");
}

#[test]
fn a_lock_that_raced_with_the_safe_point_keeps_its_key_as_it_is() {
    let store = Store::default();
    store.must_write(10, 11, vec![put("k", "1")]);
    store.must_write(20, 21, vec![put("k", "2")]);
    // Its snapshot was taken before the safe point rose, its lock arrived after.
    let late = store.process(prewrite(b"k", 25, vec![put("k", "3")]).into()).unwrap();
    gc(&store, 30, &[]).unwrap();
    store.apply(late.modifies);
    assert!(matches!(gc(&store, 30, &["k"]), Err(Error::KeyIsLocked(_))));
    store.commit(&["k"], 25, 35).unwrap();
    assert_eq!(gc(&store, 30, &["k"]).unwrap().removed, 1);
    assert_eq!(timestamps(&store), [35, 21]);
}

#[test]
fn transactions_from_below_are_refused_since_what_would_refuse_them_may_be_gone() {
    let store = Store::default();
    store.run(Cleanup { key: b"k".to_vec(), start_ts: 10, current_ts: 0 }).unwrap();
    store.prewrite(20, vec![put("mine", "v")]).unwrap();
    store.run(Rollback { keys: bytes(&["mine"]), start_ts: 20 }).unwrap();
    gc(&store, 30, &["k", "mine"]).unwrap();
    assert_eq!(timestamps(&store), [0; 0]);
    for start_ts in [10, 20, 29] {
        let refused = Error::GcTooEarly { read_ts: start_ts, safe_point: 30 };
        assert_eq!(store.prewrite(start_ts, vec![put("k", "v")]), Err(refused));
    }
    store.prewrite(30, vec![put("k", "v")]).unwrap();
}

#[test]
fn a_rollback_at_the_safe_point_itself_stays() {
    let store = Store::default();
    store.must_write(10, 20, vec![delete("overlapped")]);
    for key in ["plain", "overlapped"] {
        store.run(Cleanup { key: key.into(), start_ts: 20, current_ts: 0 }).unwrap();
    }
    gc(&store, 20, &["plain", "overlapped"]).unwrap();
    for key in ["plain", "overlapped"] {
        assert!(matches!(store.prewrite(20, vec![put(key, "v")]), Err(Error::WriteConflict(_))));
    }
    gc(&store, 21, &["plain", "overlapped"]).unwrap();
    assert_eq!(timestamps(&store), [0; 0]);
}

#[test]
fn a_repeated_commit_is_not_told_that_it_failed_when_its_record_is_collected() {
    let store = Store::default();
    store.must_write(10, 15, vec![delete("k")]);
    gc(&store, 15, &["k"]).unwrap();
    let commit = |commit_ts| store.run(Commit { keys: bytes(&["k"]), start_ts: 10, commit_ts });
    assert_eq!(commit(15), Err(Error::GcTooEarly { read_ts: 10, safe_point: 15 }));
    assert!(matches!(commit(16), Err(Error::TxnLockNotFound { .. })), "that one would still be there");
}

#[test]
fn a_round_is_bounded_and_a_deletion_goes_last() {
    let store = Store::default();
    let versions = 5000;
    for n in 0..versions {
        let processed = store.process(prewrite(b"k", 2 * n + 1, vec![put("k", "v")]).into()).unwrap();
        store.apply(processed.modifies);
        let commit = Commit { keys: bytes(&["k"]), start_ts: 2 * n + 1, commit_ts: 2 * n + 2 };
        store.apply(store.process(commit.into()).unwrap().modifies);
    }
    let end = 2 * versions + 10;
    store.must_write(end, end + 1, vec![delete("k")]);
    store.must_write(end, end + 1, vec![delete("other")]);
    let round = || {
        let processed =
            store.process(Gc { safe_point: end + 5, keys: bytes(&["k", "other"]) }.into()).unwrap();
        store.apply(processed.modifies);
        Gc::result(processed.response)
    };
    let first = round();
    assert_eq!((first.removed, first.unfinished), (4096, bytes(&["k", "other"])));
    assert_eq!(store.must_get("k", end + 5), None, "what is left stays hidden");
    let second = round();
    assert_eq!((second.removed, second.unfinished), (versions - 4096 + 2, vec![]));
    assert_eq!(timestamps(&store), [0; 0]);
}

impl Gc {
    fn result(response: crate::command::Response) -> GcResult {
        <Self as crate::command::Request>::output(response).unwrap()
    }
}

#[test]
fn keys_with_garbage_are_found_page_by_page() {
    let store = Store::default();
    for (ts, key) in [(10, "a"), (20, "a"), (30, "b"), (40, "c"), (50, "c"), (60, "d"), (70, "d")] {
        store.must_write(ts, ts + 1, vec![put(key, "v")]);
    }
    store.must_write(80, 81, vec![delete("e")]);
    let page = |start: &str, limit, safe_point| {
        store.run(ScanGcKeys { safe_point, start_key: start.into(), end_key: vec![], limit }).unwrap()
    };
    let found = |keys: &[&str], next: Option<&str>| GcKeys {
        keys: bytes(keys),
        next_start_key: next.map(|key| key.as_bytes().to_vec()),
    };
    assert_eq!(page("", 100, 65), found(&["a", "c"], None));
    assert_eq!(page("", 100, 90), found(&["a", "c", "d", "e"], None));
    assert_eq!(page("", 1, 90), found(&["a"], Some("b")), "a key is looked at as a whole");
    assert_eq!(page("", 2, 90), found(&["a"], Some("b")));
    assert_eq!(page("b", 2, 90), found(&["c"], Some("d")));
    let names: Vec<_> = ["a", "c", "d", "e"].into();
    gc(&store, 90, &names).unwrap();
    assert_eq!(page("", 100, 90), found(&[], None));
}

#[test]
fn a_safe_point_in_the_future_is_refused() {
    let store = Store::default();
    let range = store.run(AllocateTimestamps { at_least: 100, window: 50 }).unwrap();
    assert_eq!((range.first, range.limit), (100, 150));
    let refused = gc(&store, 150, &[]);
    assert!(matches!(
        refused,
        Err(Error::InvalidCommand(InvalidCommand::OutOfRange { field, .. })) if field == "safe_point"
    ));
    gc(&store, 149, &[]).unwrap();
}
