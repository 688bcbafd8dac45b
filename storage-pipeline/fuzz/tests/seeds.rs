//! The seeds as ordinary tests, for machines without libFuzzer, and the proof that they reach what they are for.

use std::fs;

use storage_pipeline::{
    engine::{Cf, Modify, modify},
    raftstore::entry::{self, Owner},
    txn::{
        keys::Key,
        lock::{Lock, LockType},
        write::{Write, WriteType},
    },
};

/// What the seeds are: everything that is taken, in the form in which the pipeline makes it.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let lock = Lock {
        lock_type: LockType::Put,
        primary: b"account/7".to_vec(),
        start_ts: 7 << 18,
        ttl_ms: 3000,
        txn_size: 300,
        min_commit_ts: 8 << 18,
        short_value: Some(b"seven".to_vec()),
    };
    let mut write = Write::new(WriteType::Put, 7 << 18, Some(b"seven".to_vec()));
    write.has_overlapped_rollback = true;
    let rollback = Write::new_rollback(9 << 18, true);
    let key = Key::from_raw(b"account/17");
    let changes = [
        Modify::Put(Cf::Lock, key.as_encoded().to_vec(), lock.encode()),
        Modify::Put(Cf::Write, key.append_ts(8 << 18), write.encode()),
        Modify::Delete(Cf::Default, key.append_ts(7 << 18)),
    ];
    let order = [&[5, 9, 3][..], b"abcdeabcde\0\0\xff"].concat();
    let made = [&[1, 4, 7][..], &[3; 16], b"keys and a value"].concat();
    let settings: Vec<u8> = (0..19u64).flat_map(|field| (1u64 << field).to_le_bytes()).collect();
    let with = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    vec![
        ("lock", with(0, &lock.encode())),
        ("write", with(1, &write.encode())),
        ("rollback", with(1, &rollback.encode())),
        ("key", with(2, key.as_encoded())),
        ("versioned-key", with(2, &key.append_ts(8 << 18))),
        ("order", with(3, &order)),
        ("changes", with(4, &modify::encode(&changes))),
        ("settings", with(5, &settings)),
        ("mode", with(6, b"ApplyNotify")),
        ("raft-log", with(6, b"RocksDB")),
        ("made", with(7, &made)),
        ("entry", with(8, &entry::encode(Owner::of(3), &changes))),
    ]
}

/// Reads a seed, or makes it anew where that is asked for.
fn seed(target: &str, name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = format!("{}/seeds/{target}/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("WRITE_SEEDS").is_some() {
        fs::write(&path, bytes).unwrap();
    }
    let stored = fs::read(&path).unwrap();
    assert_eq!(stored, bytes, "{name}: WRITE_SEEDS=1 makes them anew");
    stored
}

#[test]
fn seeds_are_what_the_pipeline_makes_and_come_back_as_they_were() {
    for (name, bytes) in seeds() {
        storage_pipeline_fuzz::run(&seed("records", name, &bytes));
    }
}

#[test]
fn what_others_send_is_taken_where_it_makes_sense() {
    // Kind, sender, term, index, term of the entry before, commit; then what belongs to the kind.
    let append = [3, 2, 1, 0, 0, 1, 2, 1, 3];
    let commit = [8, 2, 1, 0, 0, 2, 0];
    let overwrites = [3, 3, 2, 1, 1, 2, 1, 1];
    let chunk = [23, 5, 1, 0, 7];
    let snapshot = [7, 2, 1, 0, 0, 0, 1, 5, 1, 3, 1, 2, 3, 0, 0, 0, 0];
    let vote = [5, 3, 4, 1, 1, 0, 0];
    for (name, bytes, applied) in [
        ("append", [&append[..], &commit].concat(), Some(2)),
        ("overwrite", [&append[..], &overwrites].concat(), Some(2)),
        ("vote", [&append[..], &vote].concat(), Some(1)),
        ("snapshot", [&append[..], &chunk, &snapshot].concat(), Some(5)),
        ("loss", commit.to_vec(), None),
    ] {
        assert_eq!(storage_pipeline_fuzz::messages::run(&seed("messages", name, &bytes)), applied, "{name}");
    }
}

#[test]
fn a_log_with_a_hole_is_refused_and_a_torn_one_is_not() {
    let sizes = [9, 200, 40, 17, 250, 3];
    for (name, kind, count, damage, is_refused) in [
        ("rocksdb-whole", 0, 6, [0; 0].as_slice(), false),
        ("rocksdb-torn", 0, 4, &[0xf0, 0, 0, 0], false),
        ("rocksdb-hole", 0, 6, &[0, 9, 1, 30], true),
        ("raft-engine-torn", 1, 6, &[0xff, 0, 4, 0], false),
        ("raft-engine-hole", 1, 6, &[0x20, 0, 5, 0], true),
    ] {
        let bytes = [&[kind, count], &sizes[..], damage].concat();
        assert_eq!(storage_pipeline_fuzz::logs::run(&seed("logs", name, &bytes)), is_refused, "{name}");
    }
}

#[test]
fn a_node_is_configured_by_flags_and_a_file_or_told_why_not() {
    let file = "cluster_id = 7\nnode_id = 1\ndir = \"d\"\nlisten = \"127.0.0.1:1\"\nsplit_keys = ['q\\xff']\n\
                [peers]\n1 = \"127.0.0.1:1\"\n2 = \"127.0.0.1:2\"\n";
    let flag = "--set completion_mode=WorkerAll\n";
    for (name, text, taken) in [
        ("file", file.to_owned(), Ok(())),
        ("flags", format!("{flag}--set node_id=2\n{file}"), Ok(())),
        ("unknown-field", format!("--set color=red\n{file}"), Err("color")),
        ("out-of-range", format!("--set worker_threads=0\n{file}"), Err("worker_threads")),
        ("no-toml", file[1..].replace(" = ", " "), Err("not TOML")),
        (
            "no-cluster",
            file.replace("cluster_id", "node_id").replacen("node_id = 7\n", "", 1),
            Err("cluster_id"),
        ),
    ] {
        let bytes = seed("node_config", name, text.as_bytes());
        match (storage_pipeline_fuzz::node_config::run(&bytes).unwrap(), taken) {
            (Ok(()), Ok(())) => {}
            (Err(why), Err(named)) if why.contains(named) => {}
            (is, _) => panic!("{name}: {is:?}"),
        }
    }
}
