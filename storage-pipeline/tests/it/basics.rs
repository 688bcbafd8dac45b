//! The store does what it says: raw keys, transactions, snapshot isolation, reopening.

use std::{collections::BTreeMap, thread, time::Duration};

use storage_pipeline::{
    Error, Outcome, Storage, TransactionError,
    command::{BatchGet, Commit, Get, Mutation, Prewrite, RawCompareAndSwap, RawGet, RawPut, RawScan, Scan},
    error::CommandError,
};

use crate::support::{Tested, config, in_every_mode, with_more_time};

#[test]
fn raw_keys_are_set_read_removed_scanned_and_swapped() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let storage = &tested.storage;
        assert_eq!(storage.raw_get(b"a"), Outcome::Applied(None));
        for key in ["a", "b", "c"] {
            assert!(storage.raw_put(key.as_bytes(), key.to_uppercase().as_bytes()).is_applied());
        }
        assert!(storage.raw_delete(b"b").is_applied());
        let scan = |reverse| {
            let scan =
                RawScan { start_key: Vec::new(), end_key: Vec::new(), limit: 10, reverse, key_only: false };
            let pairs = storage.execute(scan).into_result().unwrap();
            pairs.into_iter().map(|pair| (pair.key, pair.value)).collect::<Vec<_>>()
        };
        let expected = vec![(b"a".to_vec(), b"A".to_vec()), (b"c".to_vec(), b"C".to_vec())];
        assert_eq!(scan(false), expected);
        assert_eq!(scan(true), expected.into_iter().rev().collect::<Vec<_>>());
        let swap = |previous: Option<&[u8]>| {
            let previous = previous.map(<[u8]>::to_vec);
            let swap = RawCompareAndSwap { key: b"a".to_vec(), previous, value: b"new".to_vec() };
            storage.execute(swap).into_result().unwrap()
        };
        assert!(!swap(None).succeeded);
        assert!(swap(Some(b"A")).succeeded);
        assert_eq!(swap(Some(b"A")).previous.as_deref(), Some(b"new".as_slice()));
        tested.finish();
    });
}

#[test]
fn a_transaction_is_seen_whole_by_later_ones_and_not_by_earlier_ones() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let storage = &tested.storage;
        let before = storage.begin().into_result().unwrap();
        let mut writer = storage.begin().into_result().unwrap();
        writer.put(b"a", b"1");
        writer.insert(b"b", &[7; 1000]);
        let commit_ts = writer.commit().unwrap();
        let after = storage.begin().into_result().unwrap();
        assert!(before.start_ts() < commit_ts && commit_ts < after.start_ts());
        assert_eq!(before.get(b"a").unwrap(), None);
        assert_eq!(after.get(b"a").unwrap(), Some(b"1".to_vec()));
        assert_eq!(after.get(b"b").unwrap(), Some(vec![7; 1000]));
        let get = |key: &[u8]| {
            storage.execute(Get { key: key.to_vec(), read_ts: after.start_ts(), bypass_locks: Vec::new() })
        };
        assert_eq!(get(b"a"), Outcome::Applied(Some(b"1".to_vec())));
        let batch = BatchGet {
            keys: vec![b"b".to_vec(), b"none".to_vec(), b"a".to_vec()],
            read_ts: after.start_ts(),
            bypass_locks: Vec::new(),
        };
        assert_eq!(storage.execute(batch).into_result().unwrap().len(), 2);
        for reverse in [false, true] {
            let scan = Scan {
                start_key: Vec::new(),
                end_key: Vec::new(),
                limit: 10,
                read_ts: after.start_ts(),
                reverse,
                key_only: true,
                bypass_locks: Vec::new(),
            };
            let keys: Vec<_> =
                storage.execute(scan).into_result().unwrap().into_iter().map(|p| p.key).collect();
            assert_eq!(keys.len(), 2);
            assert_eq!(keys[0] > keys[1], reverse);
        }
        tested.finish();
    });
}

#[test]
fn of_two_writers_of_one_key_one_is_rolled_back_and_an_insert_of_an_existing_key_too() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let (mut one, mut other) =
            (tested.storage.begin().into_result().unwrap(), tested.storage.begin().into_result().unwrap());
        one.put(b"k", b"one");
        one.put(b"l", b"one");
        other.put(b"k", b"other");
        one.commit().unwrap();
        match other.commit() {
            Err(TransactionError::RolledBack(CommandError::NotExecuted(Error::WriteConflict(conflict)))) => {
                assert_eq!(conflict.key, b"k");
            }
            result => panic!("{result:?}"),
        }
        let mut insert = tested.storage.begin().into_result().unwrap();
        insert.insert(b"l", b"again");
        match insert.commit() {
            Err(TransactionError::RolledBack(CommandError::NotExecuted(Error::AlreadyExist { key }))) => {
                assert_eq!(key, b"l");
            }
            result => panic!("{result:?}"),
        }
        tested.finish();
    });
}

#[test]
fn the_lock_of_a_vanished_client_is_resolved_by_the_next_reader_and_writer() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let start_ts = tested.storage.timestamp().into_result().unwrap();
        let keys = [b"k".to_vec(), b"l".to_vec()];
        let prewrite = Prewrite {
            mutations: keys
                .iter()
                .map(|key| Mutation::Put { key: key.clone(), value: b"lost".to_vec() })
                .collect(),
            primary: b"k".to_vec(),
            start_ts,
            lock_ttl_ms: 1,
            txn_size: 2,
            min_commit_ts: 0,
        };
        assert!(tested.storage.execute(prewrite).is_applied());
        thread::sleep(Duration::from_millis(5));
        let reader = tested.storage.begin().into_result().unwrap();
        assert_eq!(reader.get(b"l").unwrap(), None);
        let mut writer = tested.storage.begin().into_result().unwrap();
        writer.insert(b"k", b"mine");
        writer.commit().unwrap();
        let reader = tested.storage.begin().into_result().unwrap();
        assert_eq!(reader.scan(b"", b"", 10).unwrap().len(), 1);
        tested.finish();
    });
}

#[test]
fn a_reader_passes_a_living_lock_and_its_writer_commits_behind_the_reader() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let start_ts = tested.storage.timestamp().into_result().unwrap();
        let early_ts = tested.storage.timestamp().into_result().unwrap();
        let prewrite = Prewrite {
            mutations: vec![Mutation::Put { key: b"k".to_vec(), value: b"v".to_vec() }],
            primary: b"k".to_vec(),
            start_ts,
            lock_ttl_ms: 600_000,
            txn_size: 1,
            min_commit_ts: 0,
        };
        assert!(tested.storage.execute(prewrite).is_applied());
        let reader = tested.storage.begin().into_result().unwrap();
        // Not because the lock has expired: nobody waits for that long.
        assert_eq!(reader.get(b"k").unwrap(), None);
        let commit =
            |commit_ts| tested.storage.execute(Commit { keys: vec![b"k".to_vec()], start_ts, commit_ts });
        assert!(matches!(commit(early_ts), Outcome::NotExecuted(Error::CommitTsExpired { .. })));
        assert!(commit(tested.storage.timestamp().into_result().unwrap()).is_applied());
        assert_eq!(reader.get(b"k").unwrap(), None, "what it has read stays so");
        tested.finish();
    });
}

#[test]
fn a_writer_waits_for_a_living_lock_and_says_whose_it_is() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let start_ts = tested.storage.timestamp().into_result().unwrap();
        let prewrite = Prewrite {
            mutations: vec![Mutation::Put { key: b"k".to_vec(), value: b"v".to_vec() }],
            primary: b"k".to_vec(),
            start_ts,
            lock_ttl_ms: 600_000,
            txn_size: 1,
            min_commit_ts: 0,
        };
        assert!(tested.storage.execute(prewrite).is_applied());
        tested.finish();
        with_more_time(Duration::from_millis(300), |timeout| {
            let mut config = config(mode, dir);
            config.default_timeout = timeout;
            let tested = Tested::open(config);
            let commit = || {
                let mut writer =
                    tested.storage.begin().into_result().map_err(TransactionError::RolledBack)?;
                writer.put(b"k", b"mine");
                writer.commit()
            };
            let found = match commit() {
                Err(TransactionError::RolledBack(CommandError::NotExecuted(Error::KeyIsLocked(lock)))) => {
                    assert_eq!((lock.start_ts, lock.key.as_slice()), (start_ts, b"k".as_slice()));
                    Some(())
                }
                // There was no time to find the lock.
                Err(_) => None,
                Ok(at) => panic!("committed at {at}"),
            };
            // It paused between its looks: a spinning client would have run thousands of commands.
            let looks = tested.observer.count("Processing");
            assert!(looks < timeout.as_millis() as usize / 2, "{looks} commands in {timeout:?}");
            tested.finish();
            found
        });
    });
}

#[test]
fn money_is_neither_made_nor_lost_by_concurrent_transfers() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let accounts = 6u8;
        let mut setup = tested.storage.begin().into_result().unwrap();
        (0..accounts).for_each(|n| setup.put(&[n], &100u32.to_be_bytes()));
        setup.commit().unwrap();
        let balance = |bytes: Vec<u8>| u32::from_be_bytes(bytes.try_into().unwrap());
        let committed: usize = thread::scope(|scope| {
            let workers: Vec<_> = (0..4u8)
                .map(|worker| {
                    let storage = &tested.storage;
                    scope.spawn(move || {
                        let mut committed = 0;
                        for round in 0..25u8 {
                            let (from, to) =
                                (worker.wrapping_mul(7) + round, worker + round.wrapping_mul(3) + 1);
                            let (from, to) = ([from % accounts], [to % accounts]);
                            if from == to {
                                continue;
                            }
                            let mut transfer = storage.begin().into_result().unwrap();
                            let (a, b) = (transfer.get(&from), transfer.get(&to));
                            let (Ok(Some(a)), Ok(Some(b))) = (a, b) else { continue };
                            let (a, b) = (balance(a), balance(b));
                            if a == 0 {
                                continue;
                            }
                            transfer.put(&from, &(a - 1).to_be_bytes());
                            transfer.put(&to, &(b + 1).to_be_bytes());
                            committed += usize::from(transfer.commit().is_ok());
                        }
                        committed
                    })
                })
                .collect();
            for _ in 0..10 {
                let reader = tested.storage.begin().into_result().unwrap();
                let pairs = reader.scan(b"", b"", 100).unwrap();
                assert_eq!(pairs.into_iter().map(|pair| balance(pair.value)).sum::<u32>(), 600);
            }
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert!(committed > 0);
        tested.finish();
    });
}

#[test]
fn a_reopened_store_has_what_was_written_and_only_that() {
    in_every_mode(|mode, dir| {
        let mut expected = BTreeMap::new();
        for round in 0..3u8 {
            let tested = Tested::open(config(mode, dir));
            for n in 0..20u8 {
                let (key, value) = (vec![n % 13], vec![round, n]);
                if n % 5 == 4 {
                    assert!(tested.storage.raw_delete(&key).is_applied());
                    expected.remove(&key);
                } else {
                    assert!(tested.storage.raw_put(&key, &value).is_applied());
                    expected.insert(key, value);
                }
            }
            tested.finish();
        }
        // In another mode: the data does not know how it was written.
        let storage = Storage::open(config(storage_pipeline::CompletionMode::default(), dir)).unwrap();
        let scan = RawScan {
            start_key: Vec::new(),
            end_key: Vec::new(),
            limit: 100,
            reverse: false,
            key_only: false,
        };
        let found = storage.execute(scan).into_result().unwrap();
        assert_eq!(
            found.into_iter().map(|pair| (pair.key, pair.value)).collect::<BTreeMap<_, _>>(),
            expected
        );
        let absent = storage.execute(RawGet { key: b"absent".to_vec() });
        assert_eq!(absent, Outcome::Applied(None));
        assert!(storage.execute(RawPut { key: b"k".to_vec(), value: Vec::new() }).is_applied());
    });
}
