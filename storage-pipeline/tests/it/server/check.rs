//! `storage-pipeline check`: it finds what is wrong with a stopped store, and leaves the directory as it is.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use storage_pipeline::{
    CompletionMode, Config, RaftLog, Storage,
    engine::{Cf, Engine, Modify, WriteBatch, rocks::RocksEngine},
};

use super::{nodes::NODES, process::file, victim::Victim};
use crate::support::config;

/// Its status and what it printed.
fn check(dir: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_storage-pipeline")).arg("check").arg(dir).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().expect("no signal"), text)
}

/// Every file with its contents.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    files
}

/// A store with locks, long and short values, rollbacks and several regions.
fn store(config: &Config) {
    let storage = Storage::open(config.clone()).unwrap();
    for n in 0..50u8 {
        storage.raw_put(&[n], b"v").into_result().unwrap();
        let mut transaction = storage.begin().into_result().unwrap();
        transaction.put(&[b'k', n], &vec![n; 10 * usize::from(n)]);
        transaction.commit().unwrap();
    }
    storage.close();
}

#[test]
fn a_sound_store_is_told_so_and_not_touched() {
    for kind in RaftLog::ALL {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(CompletionMode::default(), &dir.path().join("store"));
        config.raft_log = *kind;
        config.split_keys = vec![b"k".to_vec(), b"k\x20".to_vec()];
        store(&config);
        let before = contents(&config.dir);
        let (status, words) = check(&config.dir);
        assert_eq!(status, 0, "{words}");
        assert!(words.contains("region 3: applied") && words.contains("write: 50 keys"), "{words}");
        assert!(contents(&config.dir) == before, "nothing is touched");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
        Storage::open(config).unwrap().close();
    }
}

#[test]
fn a_store_that_runs_or_is_not_there_is_said_to_be_so() {
    for kind in RaftLog::ALL {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(CompletionMode::default(), dir.path());
        config.raft_log = *kind;
        let storage = Storage::open(config).unwrap();
        let (status, words) = check(dir.path());
        assert!(status == 2 && words.contains("in use"), "{status}: {words}");
        storage.close();
    }
    let (status, words) = check("/nowhere".as_ref());
    assert!(status == 2 && words.contains("/nowhere: there is no store"), "{status}: {words}");
}

#[test]
fn a_value_that_is_missing_a_record_that_is_none_and_a_log_that_is_broken_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(CompletionMode::default(), dir.path());
    store(&config);
    {
        let engine = RocksEngine::open(&dir.path().join("data")).unwrap();
        let long = {
            let view = engine.snapshot();
            let mut cursor = view.cursor(Cf::Default, b"", b"");
            cursor.seek_to_first().unwrap();
            cursor.entry().unwrap().0.to_vec()
        };
        let mut batch = WriteBatch::default();
        batch.push(Modify::Delete(Cf::Default, long));
        batch.push(Modify::Put(Cf::Lock, b"no key".to_vec(), b"no lock".to_vec()));
        engine.write(&batch).unwrap();
        engine.sync().unwrap();
    }
    let (status, words) = check(dir.path());
    assert!(status == 1 && words.contains("wrong: lock no key:"), "{status}: {words}");
    assert!(words.contains("wrong: write k") && words.contains("is missing"), "{words}");
    assert_eq!(words.matches("wrong: ").count(), 2, "{words}");

    fs::remove_dir_all(dir.path().join("log")).unwrap();
    let (status, words) = check(dir.path());
    assert!(status == 1 && words.contains("does not start"), "{status}: {words}");
    assert!(!dir.path().join("log").exists(), "nothing is touched");
}

#[test]
fn nodes_that_were_killed_leave_sound_stores() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), NODES[0], 7, &[]);
    let (victim, _) = Victim::start(&path);
    while !victim.ask("transfer 1 0 1").is_applied() {}
    for n in 0..200 {
        assert!(victim.ask(&format!("put key-{n} {n}")).is_applied());
    }
    victim.kill();
    let (status, words) = check(&dir.path().join("node-1"));
    assert!(status == 0 && words.contains("raw: 200 keys"), "{status}: {words}");
}
