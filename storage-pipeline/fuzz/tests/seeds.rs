//! The seeds as ordinary tests, for machines without libFuzzer, and the proof that they reach what they are for.

use std::fs;

use storage_pipeline::{
    engine::{Cf, Modify, modify},
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
    ]
}

#[test]
fn seeds_are_what_the_pipeline_makes_and_come_back_as_they_were() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds/records");
    for (name, bytes) in seeds() {
        let path = format!("{folder}/{name}");
        if std::env::var_os("WRITE_SEEDS").is_some() {
            fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), bytes, "{name}: WRITE_SEEDS=1 makes them anew");
    }
    for seed in fs::read_dir(folder).unwrap() {
        storage_pipeline_fuzz::run(&fs::read(seed.unwrap().path()).unwrap());
    }
}
