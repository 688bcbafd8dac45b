//! CheckTxnStatus and heart beats: each status, and what it does to the lock.

use crate::{
    Error,
    command::{CheckTxnStatus, Get, TxnHeartBeat, TxnStatus, testing::*},
    txn::timestamp::compose,
};

const START: u64 = compose(1000, 0);

fn check(primary: &str) -> CheckTxnStatus {
    CheckTxnStatus {
        primary: primary.into(),
        lock_ts: START,
        caller_start_ts: 0,
        current_ts: 0,
        rollback_if_not_exist: false,
    }
}

/// A store with a lock on the primary key "p" and on "k", which live for 50 ms.
fn locked() -> Store {
    let store = Store::default();
    let mut command = prewrite(b"p", START, vec![put("p", "v"), put("k", "v")]);
    command.lock_ttl_ms = 50;
    store.run(command).unwrap();
    store
}

#[test]
fn a_living_transaction_is_left_alone() {
    let store = locked();
    let before = store.contents();
    let status = store.run(CheckTxnStatus { current_ts: compose(1050, 0), ..check("p") }).unwrap();
    let TxnStatus::Uncommitted { lock, min_commit_ts_pushed: false } = status else { panic!("{status:?}") };
    assert_eq!((lock.start_ts, lock.ttl_ms), (START, 50));
    assert_eq!(store.contents(), before);
}

#[test]
fn a_reader_pushes_the_commit_and_passes_all_locks_of_the_transaction() {
    let store = locked();
    let read_ts = compose(1010, 0);
    let now = compose(1020, 0);
    let push =
        || store.run(CheckTxnStatus { caller_start_ts: read_ts, current_ts: now, ..check("p") }).unwrap();
    let TxnStatus::Uncommitted { lock, min_commit_ts_pushed: true } = push() else { panic!("it lives") };
    assert_eq!(lock.min_commit_ts, now);

    assert_eq!(store.must_get("p", read_ts), None, "the primary lock itself says so");
    assert!(matches!(store.get("k", read_ts), Err(Error::KeyIsLocked(_))), "others do not");
    let get = |key: &str, bypass_locks| store.run(Get { key: key.into(), read_ts, bypass_locks });
    assert_eq!(get("k", vec![START]).unwrap(), None);

    let too_early = store.commit(&["p"], START, read_ts);
    assert!(matches!(too_early, Err(Error::CommitTsExpired { min_commit_ts, .. }) if min_commit_ts == now));
    store.commit(&["p", "k"], START, now).unwrap();
    assert_eq!(get("k", vec![]).unwrap(), None);
    assert!(matches!(push(), TxnStatus::Committed { commit_ts } if commit_ts == now));
}

#[test]
fn a_push_without_a_present_goes_just_above_the_reader() {
    let store = locked();
    let read_ts = compose(1010, 7);
    let status = store.run(CheckTxnStatus { caller_start_ts: read_ts, ..check("p") }).unwrap();
    assert!(matches!(status, TxnStatus::Uncommitted { lock, .. } if lock.min_commit_ts == read_ts + 1));
    let next = CheckTxnStatus { caller_start_ts: read_ts + 1, ..check("p") };
    let status = store.run(next).unwrap();
    assert!(matches!(status, TxnStatus::Uncommitted { lock, .. } if lock.min_commit_ts == read_ts + 2));
    let earlier = CheckTxnStatus { caller_start_ts: START, ..check("p") };
    let TxnStatus::Uncommitted { lock, min_commit_ts_pushed: true } = store.run(earlier).unwrap() else {
        panic!("it was pushed further before")
    };
    assert_eq!(lock.min_commit_ts, read_ts + 2);
}

#[test]
fn a_rollback_inside_anothers_commit_record_is_a_fate() {
    let store = Store::default();
    store.must_write(START - 10, START, vec![put("p", "v")]);
    assert_eq!(store.run(check("p")), Err(Error::TxnNotFound { start_ts: START, key: b"p".to_vec() }));
    let roll_back = CheckTxnStatus { rollback_if_not_exist: true, ..check("p") };
    assert_eq!(store.run(roll_back).unwrap(), TxnStatus::LockNotExist);
    assert_eq!(store.run(check("p")).unwrap(), TxnStatus::RolledBack);
    let others = CheckTxnStatus { lock_ts: START - 10, ..check("p") };
    assert_eq!(store.run(others).unwrap(), TxnStatus::Committed { commit_ts: START });
}

#[test]
fn an_expired_transaction_is_rolled_back() {
    let store = locked();
    let expired = CheckTxnStatus { current_ts: compose(1051, 0), ..check("p") };
    assert_eq!(store.run(expired).unwrap(), TxnStatus::TtlExpire);
    assert_eq!(store.run(check("p")).unwrap(), TxnStatus::RolledBack);
    assert!(matches!(store.commit(&["p"], START, compose(1060, 0)), Err(Error::TxnLockNotFound { .. })));
    assert!(matches!(store.prewrite(START, vec![put("p", "v")]), Err(Error::WriteConflict(_))));
}

#[test]
fn a_transaction_without_a_trace_is_an_error_or_is_rolled_back_as_asked() {
    let store = Store::default();
    assert_eq!(store.run(check("p")), Err(Error::TxnNotFound { start_ts: START, key: b"p".to_vec() }));
    let roll_back = CheckTxnStatus { rollback_if_not_exist: true, ..check("p") };
    assert_eq!(store.run(roll_back).unwrap(), TxnStatus::LockNotExist);
    assert_eq!(store.run(check("p")).unwrap(), TxnStatus::RolledBack);
    assert!(matches!(store.prewrite(START, vec![put("p", "v")]), Err(Error::WriteConflict(_))));
}

#[test]
fn a_secondary_key_is_not_asked_for_a_fate() {
    let store = locked();
    let mismatch = Error::PrimaryMismatch { primary: b"p".to_vec() };
    assert_eq!(
        store.run(CheckTxnStatus { current_ts: compose(9000, 0), ..check("k") }),
        Err(mismatch.clone())
    );
    let beat = TxnHeartBeat { primary: b"k".to_vec(), start_ts: START, advise_ttl_ms: 99 };
    assert_eq!(store.run(beat), Err(mismatch));
}

#[test]
fn heart_beats_raise_the_time_to_live_and_never_lower_it() {
    let store = locked();
    let beat =
        |start_ts, advise_ttl_ms| store.run(TxnHeartBeat { primary: b"p".to_vec(), start_ts, advise_ttl_ms });
    assert_eq!(beat(START, 200), Ok(200));
    assert_eq!(beat(START, 100), Ok(200));
    let status = store.run(CheckTxnStatus { current_ts: compose(1200, 0), ..check("p") }).unwrap();
    assert!(matches!(status, TxnStatus::Uncommitted { .. }));
    let gone = |start_ts| Err(Error::TxnNotFound { start_ts, key: b"p".to_vec() });
    assert_eq!(beat(START + 1, 100), gone(START + 1));
    store.commit(&["p"], START, compose(1300, 0)).unwrap();
    assert_eq!(beat(START, 300), gone(START));
}
