//! What survives: nothing is acknowledged before its sync, kill -9 loses nothing, a fault poisons and loses nothing.

use std::{
    collections::HashMap,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use storage_pipeline::{
    Cause, Error, OpenError, Outcome, Storage,
    command::RawPut,
    observe::{FailPoint, Moment},
};

use crate::support::{Answer, Tested, checked, config, in_every_mode, wait_for};

fn put(key: &str, value: &str) -> RawPut {
    RawPut { key: key.into(), value: value.into() }
}

#[test]
fn no_acknowledgement_leaves_before_a_sync_that_covers_its_entry_and_writes_share_syncs() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        thread::scope(|scope| {
            for thread in 0..8 {
                let storage = tested.storage.clone();
                scope.spawn(move || {
                    for n in 0..25 {
                        assert!(storage.raw_put(format!("{thread}-{n}").as_bytes(), b"v").is_applied());
                    }
                });
            }
        });
        let mut synced_through = 0;
        let mut syncs = 0;
        let mut index_of = HashMap::new();
        let mut told = 0;
        for (_, moment) in tested.observer.moments().iter() {
            match *moment {
                Moment::Proposed { cid, index, .. } => {
                    index_of.insert(cid, index);
                }
                Moment::LogWritten { last_index, synced: true, .. } => {
                    synced_through = last_index;
                    syncs += 1;
                }
                Moment::Applying { index, .. } => assert!(index <= synced_through, "applied before its sync"),
                Moment::TellingCaller { cid, .. } => {
                    assert!(index_of[&cid] <= synced_through, "told before its sync");
                    told += 1;
                }
                _ => {}
            }
        }
        assert_eq!(told, 200);
        assert!(syncs < told, "{syncs} syncs for {told} writes: none was shared");
        tested.finish();
    });
}

#[test]
#[cfg(feature = "raft-engine")]
fn a_directory_stays_with_its_kind_of_raft_log() {
    use storage_pipeline::{CompletionMode, RaftLog};

    for (own, other) in [(RaftLog::RocksDb, RaftLog::RaftEngine), (RaftLog::RaftEngine, RaftLog::RocksDb)] {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(CompletionMode::default(), dir.path());
        config.raft_log = own;
        let storage = Storage::open(config.clone()).unwrap();
        assert!(storage.raw_put(b"k", b"v").is_applied());
        drop(storage);
        config.raft_log = other;
        match Storage::open(config.clone()) {
            Err(OpenError::OtherRaftLog { path, found, wanted }) => {
                assert!(path.starts_with(dir.path()));
                assert_eq!((found, wanted), (own.name(), other.name()));
            }
            result => panic!("{other} opened what {own} wrote: {result:?}"),
        }
        config.raft_log = own;
        assert_eq!(Storage::open(config).unwrap().raw_get(b"k"), Outcome::Applied(Some(b"v".to_vec())));
    }
}

#[test]
fn a_failing_log_or_data_write_poisons_the_store_and_loses_nothing_acknowledged() {
    in_every_mode(|mode, dir| {
        for (point, after_raft) in [(FailPoint::LogWrite, true), (FailPoint::DataWrite, true)] {
            let dir = dir.join(format!("{point:?}"));
            let tested = Tested::open(config(mode, &dir));
            assert!(tested.storage.raw_put(b"kept", b"v").is_applied());
            tested.observer.hold("Proposing");
            let proposed = Answer::new();
            tested.storage.submit(put("k", "v"), proposed.callback());
            tested.observer.wait_held("Proposing");
            let waiting = Answer::new();
            tested.storage.submit(put("k", "w"), waiting.callback());
            tested.observer.fail(point, 1);
            tested.observer.let_go("Proposing");
            assert_eq!(matches!(proposed.wait(), Outcome::Indeterminate(Cause::Poisoned(_))), after_raft);
            assert!(matches!(waiting.wait(), Outcome::NotExecuted(Error::Poisoned(_))));
            let fault = tested.storage.fault().expect("the store is poisoned");
            assert!(fault.contains("injected failure"), "{fault}");
            let refused = tested.storage.raw_put(b"other", b"v");
            assert_eq!(refused, Outcome::NotExecuted(Error::Poisoned(fault)));
            tested.storage.close();
            tested.finish();
            let again = Storage::open(config(mode, &dir)).unwrap();
            assert_eq!(again.raw_get(b"kept"), Outcome::Applied(Some(b"v".to_vec())));
            assert!(again.raw_put(b"k", b"x").is_applied());
        }
    });
}

#[test]
fn a_panic_on_any_internal_thread_poisons_the_store_and_answers_everybody() {
    in_every_mode(|mode, dir| {
        for at in ["Processing", "Proposing", "LogWriting", "Applying", "Applied", "Released"] {
            let dir = dir.join(at);
            let tested = Tested::open(config(mode, &dir));
            assert!(tested.storage.raw_put(b"kept", b"v").is_applied());
            wait_for("quiescence", || tested.storage.in_flight().is_quiescent());
            tested.observer.panic_at(at);
            let answers: Vec<_> = (0..4).map(|_| Answer::new()).collect();
            answers.iter().for_each(|answer| tested.storage.submit(checked("k"), answer.callback()));
            answers.iter().for_each(|answer| {
                let _ = answer.wait();
            });
            wait_for("the fault", || tested.storage.fault().is_some());
            let fault = tested.storage.fault().unwrap();
            assert!(fault.contains("injected panic"), "{fault}");
            assert!(tested.storage.raw_put(b"k", b"v").is_not_executed());
            tested.storage.close();
            tested.finish();
            let again = Storage::open(config(mode, &dir)).unwrap();
            assert_eq!(again.raw_get(b"kept"), Outcome::Applied(Some(b"v".to_vec())));
        }
    });
}

#[test]
fn the_log_is_truncated_only_behind_synced_data_and_the_store_reopens_from_what_is_left() {
    in_every_mode(|mode, dir| {
        for round in 0..3u32 {
            let mut config = config(mode, dir);
            config.log_gc_entries = 20;
            let tested = Tested::open(config);
            for n in 0..60u32 {
                assert!(tested.storage.raw_put(&n.to_be_bytes(), &round.to_be_bytes()).is_applied());
            }
            wait_for("a truncation", || tested.observer.count("Truncating") > 0);
            assert!(tested.storage.raw_put(b"after", b"v").is_applied());
            tested.finish();
        }
        let again = Storage::open(config(mode, dir)).unwrap();
        for n in 0..60u32 {
            assert_eq!(again.raw_get(&n.to_be_bytes()), Outcome::Applied(Some(2u32.to_be_bytes().to_vec())));
        }
    });
}

#[test]
fn a_directory_that_is_open_is_refused_by_name() {
    in_every_mode(|mode, dir| {
        let first = Storage::open(config(mode, dir)).unwrap();
        match Storage::open(config(mode, dir)) {
            Err(OpenError::Locked { path }) => assert!(path.starts_with(dir)),
            other => panic!("{other:?}"),
        }
        assert!(first.raw_put(b"k", b"v").is_applied(), "the first is unharmed");
    });
}

#[test]
fn data_without_its_log_and_a_log_without_its_data_are_refused() {
    in_every_mode(|mode, dir| {
        for lost in ["log", "data"] {
            let dir = dir.join(lost);
            let mut config = config(mode, &dir);
            config.log_gc_entries = 5;
            let tested = Tested::open(config.clone());
            for n in 0..20u32 {
                assert!(tested.storage.raw_put(&n.to_be_bytes(), b"v").is_applied());
            }
            wait_for("a truncation", || tested.observer.count("Truncating") > 0);
            // It reaches the log with the next write.
            assert!(tested.storage.raw_put(b"after", b"v").is_applied());
            tested.finish();
            std::fs::remove_dir_all(dir.join(lost)).unwrap();
            match Storage::open(config) {
                Err(OpenError::Corrupt { path, .. }) => assert!(path.starts_with(&dir)),
                other => panic!("without its {lost} the store opened: {other:?}"),
            }
        }
    });
}

#[test]
fn timestamps_rise_across_reopening() {
    in_every_mode(|mode, dir| {
        let mut last = 0;
        for _ in 0..3 {
            let storage = Storage::open(config(mode, dir)).unwrap();
            for _ in 0..100 {
                let next = storage.timestamp().into_result().unwrap();
                assert!(next > last);
                last = next;
            }
        }
    });
}

#[test]
fn timestamps_run_ahead_of_the_clock_by_one_window_however_often_a_store_is_reopened() {
    in_every_mode(|mode, dir| {
        for _ in 0..6 {
            let storage = Storage::open(config(mode, dir)).unwrap();
            let next = storage.timestamp().into_result().unwrap();
            let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let ahead = Duration::from_millis(next >> 18).saturating_sub(clock);
            assert!(ahead < Duration::from_millis(3500), "{ahead:?}: no lock expires for so long");
        }
    });
}
