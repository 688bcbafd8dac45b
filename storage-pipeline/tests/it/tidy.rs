//! What no lint sees: every file says what it is for, none swallows the building, and no room reaches where it must not.

use std::{
    fs,
    path::{Path, PathBuf},
};

const MOST_LINES: usize = 240;

/// Rooms and what they may not name: the right column of the code map in `docs/architecture.md`.
const FORBIDDEN: [(&str, &[&str]); 10] = [
    ("command/", &["std::thread", "Instant::now", "raft::", "rocksdb::", "Mailbox", "parking_lot"]),
    ("txn/", &["std::thread", "Instant::now", "raft::", "rocksdb::", "Mailbox", "parking_lot"]),
    ("scheduler/", &["raft::", "rocksdb::"]),
    ("worker_pool.rs", &["raft::", "rocksdb::"]),
    ("local_reader/", &["rocksdb::", "raft::"]),
    ("apply/", &["latches", "rocksdb::"]),
    ("raftstore/peer.rs", &["Instant::now", "std::thread", "Mailbox"]),
    ("raftstore/reads.rs", &["Instant", "std::thread", "Mailbox"]),
    ("server/", &["latches::", "rocksdb::"]),
    ("mailbox.rs", &["parking_lot::", "loom::", "std::sync::Mutex"]),
];

/// The sources of the crate with their names.
fn sources() -> Vec<(String, String)> {
    sources_in("src")
}

fn sources_in(folder: &str) -> Vec<(String, String)> {
    fn walk(dir: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Vec::new();
    walk(&root, &mut files);
    let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

fn is_test(name: &str) -> bool {
    name.contains("tests") || name.contains("testing")
}

/// The part of a file before its tests.
fn without_tests(text: &str) -> &str {
    text.split("\nmod tests {").next().unwrap()
}

#[test]
fn every_file_says_what_it_is_for_and_none_swallows_the_building() {
    let mut bad = Vec::new();
    for (name, text) in sources() {
        let heads =
            text.starts_with("//!") || text.starts_with("#![forbid(unsafe_code)]\n//!") || is_test(&name);
        let lines = without_tests(&text).lines().count();
        if !heads || (lines > MOST_LINES && !is_test(&name) && name != "error.rs") {
            bad.push(format!("{name}: {lines} lines"));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn no_room_names_what_it_must_not_know() {
    let mut bad = Vec::new();
    for (name, text) in sources().iter().filter(|(name, _)| !is_test(name)) {
        for (room, words) in FORBIDDEN.iter().filter(|(room, _)| name.starts_with(room)) {
            let code = without_tests(text).lines().filter(|line| !line.trim_start().starts_with("//"));
            let named = code.flat_map(|line| words.iter().filter(move |word| line.contains(**word)));
            bad.extend(named.map(|word| format!("{name} ({room}) names {word}")));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn every_test_of_the_fault_table_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("../docs/testing.md")).unwrap();
    let folders = ["src", "tests/it", "../callback-slot/tests/it", "../loom-tests/tests"];
    let code: String = folders.into_iter().flat_map(sources_in).map(|(_, text)| text).collect();
    let names = table.split('`').skip(1).step_by(2).filter_map(|word| word.rsplit("::").next());
    let tests = names
        .filter(|name| name.matches('_').count() >= 2 && name.chars().all(|c| c.is_lowercase() || c == '_'));
    let is_there = |name: &str| ["(", "<"].iter().any(|next| code.contains(&format!("fn {name}{next}")));
    let missing: Vec<_> = tests.clone().filter(|name| !is_there(name)).collect();
    assert!(tests.count() > 20, "the table names its tests");
    assert!(missing.is_empty(), "{missing:#?}");
}
