//! Rollback, cleanup and resolution: what their records keep out, and how they give room.

use crate::{
    Error,
    command::{Cleanup, ResolveLock, Rollback, testing::*},
    engine::Cf,
    txn::{Write, keys::split_ts, timestamp::compose},
};

fn rollback(store: &Store, keys: &[&str], start_ts: u64) -> Result<(), Error> {
    store.run(Rollback { keys: bytes(keys), start_ts })
}

fn cleanup(store: &Store, key: &str, start_ts: u64, current_ts: u64) -> Result<(), Error> {
    store.run(Cleanup { key: key.into(), start_ts, current_ts })
}

/// The write records by their timestamps, newest first within a key.
fn records(store: &Store) -> Vec<(u64, Write)> {
    let decode =
        |(_, key, value): &(_, Vec<u8>, Vec<u8>)| (split_ts(key).unwrap().1, Write::decode(value).unwrap());
    store.contents_of(Cf::Write).iter().map(decode).collect()
}

#[test]
fn committed_transactions_cannot_be_rolled_back() {
    let store = Store::default();
    store.must_write(10, 15, vec![put("k", "v")]);
    let committed = Err(Error::Committed { start_ts: 10, commit_ts: 15 });
    let before = store.contents();
    assert_eq!(rollback(&store, &["other", "k"], 10), committed);
    assert_eq!(cleanup(&store, "k", 10, 0), committed);
    assert_eq!(store.run(ResolveLock { start_ts: 10, commit_ts: 0, keys: bytes(&["k"]) }), committed);
    assert_eq!(store.contents(), before);
}

#[test]
fn a_rollback_leaves_the_locks_of_others_alone() {
    let store = Store::default();
    store.prewrite(20, vec![put("k", "v")]).unwrap();
    rollback(&store, &["k"], 10).unwrap();
    cleanup(&store, "k", 30, 0).unwrap();
    store.commit(&["k"], 20, 40).unwrap();
    assert_eq!(store.must_get("k", 40), Some(b"v".to_vec()));
    assert!(matches!(store.prewrite(30, vec![put("k", "w")]), Err(Error::WriteConflict(_))));
}

#[test]
fn cleanup_respects_a_living_lock() {
    let store = Store::default();
    let start_ts = compose(1000, 5);
    let mut command = prewrite(b"k", start_ts, vec![put("k", "v")]);
    command.lock_ttl_ms = 50;
    store.run(command).unwrap();
    assert!(matches!(cleanup(&store, "k", start_ts, compose(1050, 0)), Err(Error::KeyIsLocked(_))));
    cleanup(&store, "k", start_ts, compose(1051, 0)).unwrap();
    assert!(matches!(store.prewrite(start_ts, vec![put("k", "v")]), Err(Error::WriteConflict(_))));
}

#[test]
fn consecutive_rollbacks_collapse_and_still_keep_the_older_one_out() {
    let store = Store::default();
    for start_ts in [10, 20, 30] {
        store.prewrite_for(b"elsewhere", start_ts, vec![put("k", "v")]).unwrap();
        rollback(&store, &["k"], start_ts).unwrap();
    }
    let found = records(&store);
    assert_eq!(found, [(30, Write::new_rollback(30, false))]);
    for start_ts in [10, 20, 30] {
        let late = store.prewrite_for(b"elsewhere", start_ts, vec![put("k", "v")]);
        assert!(matches!(late, Err(Error::WriteConflict(_))), "{start_ts}");
    }
}

#[test]
fn protected_rollbacks_stay() {
    let store = Store::default();
    store.prewrite(10, vec![put("k", "v")]).unwrap();
    rollback(&store, &["k"], 10).unwrap();
    cleanup(&store, "k", 20, 0).unwrap();
    rollback(&store, &["k"], 30).unwrap();
    let found = records(&store);
    let expected = [(30, false), (20, true), (10, true)].map(|(ts, p)| (ts, Write::new_rollback(ts, p)));
    assert_eq!(found, expected, "of a primary key, and whatever a cleanup decided");
}

#[test]
fn a_rollback_under_anothers_commit_record_keeps_both() {
    let store = Store::default();
    store.must_write(10, 20, vec![put("k", "v")]);
    for roll_back in [rollback(&store, &["k"], 20), cleanup(&store, "k", 20, 0)] {
        roll_back.unwrap();
        let found = records(&store);
        assert_eq!(found.len(), 1);
        assert!(found[0].1.has_overlapped_rollback && found[0].1.start_ts == 10);
    }
    assert_eq!(store.must_get("k", 20), Some(b"v".to_vec()));
    assert!(matches!(store.prewrite(20, vec![put("k", "w")]), Err(Error::WriteConflict(_))));
    assert!(matches!(store.commit(&["k"], 20, 30), Err(Error::TxnLockNotFound { .. })));
}

#[test]
fn a_commit_over_anothers_rollback_record_keeps_both() {
    let store = Store::default();
    store.prewrite(10, vec![put("k", "v")]).unwrap();
    cleanup(&store, "k", 20, 0).unwrap();
    store.commit(&["k"], 10, 20).unwrap();
    let found = records(&store);
    assert_eq!(found.len(), 1);
    assert!(found[0].1.has_overlapped_rollback);
    assert_eq!(store.must_get("k", 20), Some(b"v".to_vec()));
    assert!(matches!(store.prewrite(20, vec![put("k", "w")]), Err(Error::WriteConflict(_))));
    cleanup(&store, "k", 20, 0).unwrap();
}

#[test]
fn locks_are_resolved_by_the_fate_of_their_primary() {
    let store = Store::default();
    let resolve =
        |start_ts, commit_ts, key| store.run(ResolveLock { start_ts, commit_ts, keys: bytes(&[key]) });
    store.prewrite(10, vec![put("p", "1"), put("k", "1"), put("l", "1")]).unwrap();
    store.commit(&["p"], 10, 15).unwrap();
    resolve(10, 15, "k").unwrap();
    assert_eq!(store.must_get("k", 15), Some(b"1".to_vec()));
    assert!(matches!(store.get("l", 15), Err(Error::KeyIsLocked(_))), "only the keys that are named");
    store.commit(&["l"], 10, 15).unwrap();

    store.prewrite(20, vec![put("p", "2"), put("k", "2")]).unwrap();
    cleanup(&store, "p", 20, 0).unwrap();
    resolve(20, 0, "k").unwrap();
    assert_eq!(store.must_get("k", 30), Some(b"1".to_vec()));
    assert!(matches!(resolve(20, 25, "k"), Err(Error::TxnLockNotFound { .. })));
    assert!(matches!(resolve(10, 0, "k"), Err(Error::Committed { .. })));
}
