//! Prewrite and commit: conflicts, locks, values short and long, repetitions.

use crate::{
    Error, WriteConflict,
    command::{Commit, Mutation, Rollback, testing::*},
    engine::Cf,
    txn::SHORT_VALUE_MAX_BYTES,
};

fn conflict(result: Result<(), Error>) -> WriteConflict {
    match result {
        Err(Error::WriteConflict(conflict)) => *conflict,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

#[test]
fn a_version_is_visible_from_its_commit_timestamp_on() {
    let store = Store::default();
    store.must_write(10, 15, vec![put("k", "a"), put("l", "")]);
    store.must_write(20, 25, vec![delete("k")]);
    store.must_write(30, 35, vec![put("k", "b"), lock("l")]);
    let seen: Vec<_> = [14, 15, 24, 25, 34, 35].map(|ts| store.must_get("k", ts)).into();
    let expect = |value: &str| Some(value.as_bytes().to_vec());
    assert_eq!(seen, [None, expect("a"), expect("a"), None, None, expect("b")]);
    assert_eq!(store.must_get("l", 40), expect(""), "an empty value is a value, and a lock changes none");
}

#[test]
fn short_values_travel_in_the_records_and_long_ones_beside_them() {
    let store = Store::default();
    let (short, long) = (vec![7; SHORT_VALUE_MAX_BYTES], vec![8; SHORT_VALUE_MAX_BYTES + 1]);
    store.must_write(10, 15, vec![put("k", &short)]);
    assert_eq!(store.contents_of(Cf::Default).len(), 0);
    store.must_write(20, 25, vec![put("k", &long)]);
    assert_eq!(store.contents_of(Cf::Default).len(), 1);
    assert_eq!((store.must_get("k", 15), store.must_get("k", 25)), (Some(short), Some(long.clone())));

    store.prewrite(30, vec![put("k", &long), put("l", &long)]).unwrap();
    assert_eq!(store.contents_of(Cf::Default).len(), 3);
    store.run(Rollback { keys: bytes(&["k", "l"]), start_ts: 30 }).unwrap();
    assert_eq!(store.contents_of(Cf::Default).len(), 1, "a rollback takes its values with it");
}

#[test]
fn a_commit_after_the_start_is_a_conflict_and_nothing_is_locked() {
    let store = Store::default();
    store.must_write(10, 15, vec![put("k", "v")]);
    let before = store.contents();
    let found = conflict(store.prewrite(12, vec![put("a", "v"), put("k", "w")]));
    assert_eq!((found.key, found.primary), (b"k".to_vec(), b"a".to_vec()));
    assert_eq!((found.start_ts, found.conflict_start_ts, found.conflict_commit_ts), (12, 10, 15));
    assert_eq!(store.contents(), before);
    for mutation in
        [delete("k"), lock("k"), insert("k", "w"), Mutation::CheckNotExists { key: b"k".to_vec() }]
    {
        conflict(store.prewrite(14, vec![mutation]));
    }
    store.prewrite(15, vec![put("k", "w")]).unwrap();
}

#[test]
fn a_lock_stops_others_and_says_whose_it_is() {
    let store = Store::default();
    store.prewrite(10, vec![put("p", "v"), put("k", "v")]).unwrap();
    for start_ts in [5, 20] {
        let Err(Error::KeyIsLocked(lock)) = store.prewrite(start_ts, vec![put("k", "w")]) else {
            panic!("the key is locked")
        };
        assert_eq!(
            (lock.key, lock.primary, lock.start_ts, lock.txn_size),
            (b"k".to_vec(), b"p".to_vec(), 10, 2)
        );
    }
}

#[test]
fn inserts_and_checks_need_an_absent_key() {
    let store = Store::default();
    let check = |key: &str| Mutation::CheckNotExists { key: key.into() };
    store.must_write(10, 15, vec![put("k", "v")]);
    store.must_write(16, 18, vec![lock("k")]);
    let exists = Err(Error::AlreadyExist { key: b"k".to_vec() });
    assert_eq!(store.prewrite(20, vec![insert("k", "w")]), exists, "a lock record hides no value");
    assert_eq!(store.prewrite(20, vec![check("k")]), exists);
    store.must_write(20, 25, vec![delete("k")]);

    let before = store.contents();
    store.prewrite(30, vec![check("k"), check("never")]).unwrap();
    assert_eq!(store.contents(), before, "a check locks nothing");
    store.prewrite(30, vec![insert("k", "w")]).unwrap();
    assert!(matches!(store.prewrite(35, vec![check("k")]), Err(Error::KeyIsLocked(_))));
    store.commit(&["k"], 30, 40).unwrap();
    assert_eq!(store.must_get("k", 40), Some(b"w".to_vec()));
}

#[test]
fn a_repeated_prewrite_neither_overwrites_nor_locks_again() {
    let store = Store::default();
    store.prewrite(10, vec![put("k", "first")]).unwrap();
    let locked = store.contents();
    store.prewrite(10, vec![put("k", "second")]).unwrap();
    assert_eq!(store.contents(), locked);

    store.commit(&["k"], 10, 15).unwrap();
    store.must_write(20, 25, vec![put("k", "third")]);
    let committed = store.contents();
    store.prewrite(10, vec![put("k", "first")]).unwrap();
    store.prewrite(10, vec![insert("k", "first")]).unwrap();
    assert_eq!(store.contents(), committed, "it arrived after the commit");
}

#[test]
fn a_rolled_back_transaction_is_refused_for_ever() {
    let store = Store::default();
    store.prewrite(10, vec![put("k", "v")]).unwrap();
    store.run(Rollback { keys: bytes(&["k", "never"]), start_ts: 10 }).unwrap();
    for key in ["k", "never"] {
        let found = conflict(store.prewrite(10, vec![put(key, "v")]));
        assert_eq!(
            (found.conflict_start_ts, found.conflict_commit_ts),
            (10, 10),
            "refused by its own rollback"
        );
        assert_eq!(
            store.commit(&[key], 10, 20),
            Err(Error::TxnLockNotFound { start_ts: 10, key: key.into() })
        );
    }
    assert_eq!(store.must_get("k", 30), None);
}

#[test]
fn a_commit_needs_a_lock_of_its_own() {
    let store = Store::default();
    let not_found = |start_ts| Err(Error::TxnLockNotFound { start_ts, key: b"k".to_vec() });
    assert_eq!(store.commit(&["k"], 10, 15), not_found(10));
    store.prewrite(20, vec![put("k", "v")]).unwrap();
    assert_eq!(store.commit(&["k"], 10, 15), not_found(10));
    let before = store.contents();
    let second_fails = store.commit(&["k", "l"], 20, 25);
    assert_eq!(second_fails, Err(Error::TxnLockNotFound { start_ts: 20, key: b"l".to_vec() }));
    assert_eq!(store.contents(), before, "all keys or none");
}

#[test]
fn a_transaction_has_one_commit_timestamp() {
    let store = Store::default();
    store.must_write(10, 15, vec![put("k", "v")]);
    store.commit(&["k"], 10, 15).unwrap();
    assert_eq!(store.commit(&["k"], 10, 16), Err(Error::Committed { start_ts: 10, commit_ts: 15 }));
}

#[test]
fn a_commit_below_what_readers_were_promised_is_refused() {
    let store = Store::default();
    let mut command = prewrite(b"k", 10, vec![put("k", "v")]);
    command.min_commit_ts = 30;
    store.run(command).unwrap();
    let refused = Error::CommitTsExpired { start_ts: 10, commit_ts: 29, min_commit_ts: 30 };
    assert_eq!(store.commit(&["k"], 10, 29), Err(refused));
    assert_eq!(store.must_get("k", 29), None, "the lock stops no reader below it");
    assert!(matches!(store.get("k", 30), Err(Error::KeyIsLocked(_))));
    store.run(Commit { keys: bytes(&["k"]), start_ts: 10, commit_ts: 30 }).unwrap();
}
