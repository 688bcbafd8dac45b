//! Bad input gets a typed error that names the field, before anything is latched or read, and loses nothing.

use std::time::Duration;

use storage_pipeline::{
    Error, InvalidCommand, OpenError, Outcome, Storage,
    command::{Command, Commit, Get, Mutation, Prewrite, RawPut, RawScan},
};

use crate::support::{Answer, Tested, config, in_every_mode};

fn prewrite(mutations: Vec<Mutation>) -> Prewrite {
    Prewrite {
        mutations,
        primary: b"k".to_vec(),
        start_ts: 5,
        lock_ttl_ms: 100,
        txn_size: 1,
        min_commit_ts: 0,
    }
}

fn put(key: &[u8], value: &[u8]) -> Mutation {
    Mutation::Put { key: key.to_vec(), value: value.to_vec() }
}

fn bad_commands() -> Vec<(&'static str, Command)> {
    let key_limit = storage_pipeline::Config::new("").max_key_bytes;
    let value_limit = storage_pipeline::Config::new("").max_value_bytes;
    vec![
        ("empty raw key", RawPut { key: Vec::new(), value: b"v".to_vec() }.into()),
        ("long raw key", RawPut { key: vec![1; key_limit + 1], value: b"v".to_vec() }.into()),
        ("long raw value", RawPut { key: b"k".to_vec(), value: vec![1; value_limit + 1] }.into()),
        ("no mutations", prewrite(Vec::new()).into()),
        ("empty key", prewrite(vec![put(b"", b"v")]).into()),
        ("duplicate key", prewrite(vec![put(b"k", b"v"), put(b"l", b"v"), put(b"k", b"w")]).into()),
        ("no keys", Commit { keys: Vec::new(), start_ts: 5, commit_ts: 6 }.into()),
        ("commit at start", Commit { keys: vec![b"k".to_vec()], start_ts: 5, commit_ts: 5 }.into()),
        ("commit before start", Commit { keys: vec![b"k".to_vec()], start_ts: 5, commit_ts: 4 }.into()),
        ("empty read key", Get { key: Vec::new(), read_ts: 5, bypass_locks: Vec::new() }.into()),
        (
            "no limit",
            RawScan { start_key: Vec::new(), end_key: Vec::new(), limit: 0, reverse: false, key_only: false }
                .into(),
        ),
    ]
}

#[test]
fn a_malformed_command_is_refused_by_the_name_of_its_field_before_any_latch() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        for (what, command) in bad_commands() {
            let refused = command.validate(&config(mode, dir)).expect_err(what);
            assert!(!refused.to_string().is_empty());
            let outcome = match command {
                Command::RawPut(c) => tested.storage.execute(c).map(|_| ()),
                Command::Prewrite(c) => tested.storage.execute(c).map(|_| ()),
                Command::Commit(c) => tested.storage.execute(c).map(|_| ()),
                Command::Get(c) => tested.storage.execute(c).map(|_| ()),
                Command::RawScan(c) => tested.storage.execute(c).map(|_| ()),
                other => panic!("{other:?}"),
            };
            assert_eq!(outcome, Outcome::NotExecuted(Error::InvalidCommand(refused)), "{what}");
        }
        assert_eq!(tested.observer.count("Admitted"), 0);
        assert_eq!(tested.observer.count("LatchesHeld"), 0);
        tested.finish();
    });
}

#[test]
fn sizes_at_the_limit_are_taken() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        config.max_value_bytes = 70_000;
        let (key, value) = (vec![7; config.max_key_bytes], vec![8; config.max_value_bytes]);
        let tested = Tested::open(config);
        assert!(tested.storage.raw_put(&key, &value).is_applied());
        assert_eq!(tested.storage.raw_get(&key), Outcome::Applied(Some(value.clone())));
        let over = tested.storage.raw_put(&key, &[value, vec![8]].concat());
        let limit = 70_000;
        let too_large = InvalidCommand::TooLarge { field: "value".into(), size: limit + 1, limit };
        assert_eq!(over, Outcome::NotExecuted(Error::InvalidCommand(too_large)));
        tested.finish();
    });
}

#[test]
fn what_would_make_too_large_an_entry_is_not_executed_and_the_store_goes_on() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        (config.max_key_bytes, config.max_value_bytes, config.max_entry_bytes) = (20, 200, 5000);
        let tested = Tested::open(config);
        let too_large = |outcome: Outcome<()>, of: &str| match outcome {
            Outcome::NotExecuted(Error::InvalidCommand(InvalidCommand::TooLarge {
                field,
                size,
                limit: 5000,
            })) => {
                assert!(field == of && size > 5000, "{field}: {size}");
            }
            other => panic!("{other:?}"),
        };
        let keys: Vec<_> = (0..24).map(|n| format!("key-{n:02}").into_bytes()).collect();
        let of = |keys: &[Vec<u8>]| {
            let mutations = keys.iter().map(|key| put(key, &[7; 200])).collect();
            Prewrite { primary: b"key-00".to_vec(), ..prewrite(mutations) }
        };
        // Each of its locks carries the primary key, so that it is refused before anything is made of it.
        too_large(tested.storage.execute(of(&keys)), "command");
        for some in keys.chunks(4) {
            assert!(tested.storage.execute(of(some)).is_applied());
        }
        // It names keys alone, and writes what they were locked with.
        let commit = |keys: &[Vec<u8>]| Commit { keys: keys.to_vec(), start_ts: 5, commit_ts: 6 };
        too_large(tested.storage.execute(commit(&keys)), "entry");
        for some in keys.chunks(4) {
            assert!(tested.storage.execute(commit(some)).is_applied());
        }
        let read = Get { key: keys[23].clone(), read_ts: 7, bypass_locks: Vec::new() };
        assert_eq!(tested.storage.execute(read), Outcome::Applied(Some(vec![7; 200])));
        tested.finish();
    });
}

#[test]
fn a_deadline_that_has_passed_is_refused_at_the_door() {
    in_every_mode(|mode, dir| {
        let tested = Tested::open(config(mode, dir));
        let late = Answer::new();
        let request = RawPut { key: b"k".to_vec(), value: b"v".to_vec() };
        tested.storage.submit_within(request, Duration::ZERO, late.callback());
        assert_eq!(late.wait(), Outcome::NotExecuted(Error::DeadlineExceeded));
        assert_eq!(tested.observer.count("Admitted"), 0);
        tested.finish();
    });
}

#[test]
fn a_bad_configuration_is_refused_by_the_name_of_its_field() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        config.worker_threads = 0;
        match Storage::open(config) {
            Err(OpenError::Config(error)) => assert_eq!(error.field, "worker_threads"),
            other => panic!("{other:?}"),
        }
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "nothing was made");
    });
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    in_every_mode(|mode, dir| {
        let file = dir.join("file");
        std::fs::write(&file, "in the way").unwrap();
        match Storage::open(config(mode, &file)) {
            Err(OpenError::Io { path, .. }) => assert_eq!(path, file),
            other => panic!("{other:?}"),
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), "in the way");
    });
}
