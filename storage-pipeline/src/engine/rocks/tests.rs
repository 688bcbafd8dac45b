//! Tests of the data engine on RocksDB.

use std::{collections::BTreeMap, fs, ops::Bound, process::Command};

use proptest::{collection::vec, prelude::*, sample::Index};
use rocksdb::WriteOptions;

use super::{setup::FORMAT_KEY, *};

type Model = BTreeMap<(Cf, Vec<u8>), Vec<u8>>;

fn put(cf: Cf, key: &[u8], value: &[u8]) -> Modify {
    Modify::Put(cf, key.to_vec(), value.to_vec())
}

fn write(engine: &RocksEngine, modifies: impl IntoIterator<Item = Modify>) {
    let mut batch = WriteBatch::default();
    modifies.into_iter().for_each(|modify| batch.push(modify));
    engine.write(&batch).unwrap();
}

fn refusal(dir: &Path) -> OpenError {
    RocksEngine::open(dir).err().expect("the directory must be refused")
}

#[derive(Clone, Debug)]
enum Move {
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
    First,
    Last,
    Next,
    Prev,
}

/// Short keys of few bytes, so that moves hit, miss by one and collide.
fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0u8), Just(1), Just(0xff)], 1..4)
}

fn cf() -> impl Strategy<Value = Cf> {
    (0..5u8).prop_map(|number| Cf::from_u8(number).unwrap())
}

fn modify() -> impl Strategy<Value = Modify> {
    prop_oneof![
        3 => (cf(), key(), vec(any::<u8>(), 0..4)).prop_map(|(cf, key, value)| Modify::Put(cf, key, value)),
        1 => (cf(), key()).prop_map(|(cf, key)| Modify::Delete(cf, key)),
    ]
}

fn movement() -> impl Strategy<Value = Move> {
    prop_oneof![
        key().prop_map(Move::Seek),
        key().prop_map(Move::SeekForPrev),
        Just(Move::First),
        Just(Move::Last),
        Just(Move::Next),
        Just(Move::Prev),
    ]
}

fn apply(model: &mut Model, modifies: &[Modify]) {
    for modify in modifies {
        match modify.clone() {
            Modify::Put(cf, key, value) => drop(model.insert((cf, key), value)),
            Modify::Delete(cf, key) => drop(model.remove(&(cf, key))),
        }
    }
}

/// Where a cursor stands after a move, by the definition of the moves.
fn expected(keys: &[Vec<u8>], at: Option<usize>, movement: &Move) -> Option<usize> {
    let first_at_or_after = |key: &Vec<u8>| keys.partition_point(|k| k < key);
    let found = match movement {
        Move::Seek(key) => first_at_or_after(key),
        Move::SeekForPrev(key) => keys.partition_point(|k| k <= key).checked_sub(1)?,
        Move::First => 0,
        Move::Last => keys.len().checked_sub(1)?,
        Move::Next => at? + 1,
        Move::Prev => at?.checked_sub(1)?,
    };
    (found < keys.len()).then_some(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn snapshots_and_cursors_agree_with_a_sorted_map(
        before in vec(modify(), 0..40), after in vec(modify(), 0..10), family in cf(),
        lower in prop_oneof![Just(Vec::new()), key()], upper in prop_oneof![Just(Vec::new()), key()],
        moves in vec(movement(), 0..40),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let engine = RocksEngine::open(dir.path()).unwrap();
        write(&engine, before.clone());
        let snapshot = engine.snapshot();
        write(&engine, after);
        let mut model = Model::from([((Cf::Meta, FORMAT_KEY.to_vec()), vec![0, 0, 0, 2])]);
        apply(&mut model, &before);
        for modify in &before {
            let found = snapshot.get(modify.cf(), modify.key()).unwrap();
            prop_assert_eq!(found.as_ref(), model.get(&(modify.cf(), modify.key().to_vec())));
        }
        let above = if upper.is_empty() { Bound::Unbounded } else { Bound::Excluded(&upper) };
        let inside = |key: &Vec<u8>| *key >= lower && (above == Bound::Unbounded || *key < upper);
        let keys: Vec<_> = model.keys().filter(|(cf, key)| *cf == family && inside(key)).map(|(_, k)| k.clone()).collect();
        let mut cursor = snapshot.cursor(family, &lower, &upper);
        let mut at = None;
        prop_assert_eq!(cursor.entry(), None);
        for movement in &moves {
            match movement {
                Move::Seek(key) => cursor.seek(key),
                Move::SeekForPrev(key) => cursor.seek_for_prev(key),
                Move::First => cursor.seek_to_first(),
                Move::Last => cursor.seek_to_last(),
                Move::Next => cursor.next(),
                Move::Prev => cursor.prev(),
            }.unwrap();
            at = expected(&keys, at, movement);
            let want = at.map(|at| (&keys[at][..], &model[&(family, keys[at].clone())][..]));
            prop_assert_eq!(cursor.entry(), want, "after {:?}", movement);
        }
    }

    #[test]
    fn a_torn_or_damaged_write_ahead_log_leaves_a_prefix_of_the_batches(at in any::<Index>(), torn: bool) {
        let dir = tempfile::tempdir().unwrap();
        let engine = RocksEngine::open(dir.path()).unwrap();
        // Several blocks of the log, because what follows damage within its block is lost in any case.
        for number in 0..20u8 {
            write(&engine, [put(Cf::Meta, b"applied", &[number]), put(Cf::Raw, &[number], &[number; 6000])]);
        }
        drop(engine);
        let wal = newest_wal(dir.path());
        let mut bytes = fs::read(&wal).unwrap();
        let at = at.index(bytes.len());
        if torn {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1;
        }
        fs::write(&wal, bytes).unwrap();
        let snapshot = RocksEngine::open(dir.path()).unwrap().snapshot();
        let applied = snapshot.get(Cf::Meta, b"applied").unwrap().map(|value| value[0]);
        prop_assert_ne!(applied, Some(19));
        for number in 0..20u8 {
            let found = snapshot.get(Cf::Raw, &[number]).unwrap();
            prop_assert_eq!(found.is_some(), applied.is_some_and(|last| number <= last));
        }
    }
}

fn newest_wal(dir: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "log")).max().unwrap()
}

#[test]
fn what_was_written_is_there_after_the_last_handle_is_dropped_and_the_directory_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(&dir.path().join("not/there/yet")).unwrap();
    write(&engine, Cf::ALL.map(|cf| put(cf, b"k", cf.name().as_bytes())));
    engine.sync().unwrap();
    drop(engine.clone());
    drop(engine);
    let engine = RocksEngine::open(&dir.path().join("not/there/yet")).unwrap();
    for cf in Cf::ALL {
        assert_eq!(engine.snapshot().get(cf, b"k").unwrap().as_deref(), Some(cf.name().as_bytes()));
    }
}

/// How often RocksDB has synced a write-ahead log.
pub(crate) fn wal_syncs(options: &Options) -> u64 {
    let statistics = options.get_statistics().unwrap();
    let line = statistics.lines().find_map(|line| line.strip_prefix("rocksdb.wal.synced COUNT : "));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn a_write_is_not_synced_and_a_sync_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    let tune = |tuned: &mut Options| {
        tuned.enable_statistics();
        options = tuned.clone();
    };
    let engine = RocksEngine::open_tuned(dir.path(), tune).unwrap();
    let before = wal_syncs(&options);
    write(&engine, [put(Cf::Raw, b"k", b"v")]);
    assert_eq!(wal_syncs(&options), before);
    engine.sync().unwrap();
    assert_eq!(wal_syncs(&options), before + 1);
}

#[test]
fn a_snapshot_travels_to_another_thread_and_outlives_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(dir.path()).unwrap();
    write(&engine, [put(Cf::Raw, b"k", b"old")]);
    let snapshot = engine.snapshot();
    write(&engine, [put(Cf::Raw, b"k", b"new")]);
    drop(engine);
    let read = std::thread::spawn(move || {
        let mut cursor = snapshot.cursor(Cf::Raw, b"", b"");
        cursor.seek_to_first().unwrap();
        cursor.entry().map(|(key, value)| (key.to_vec(), value.to_vec()))
    });
    assert_eq!(read.join().unwrap(), Some((b"k".to_vec(), b"old".to_vec())));
    RocksEngine::open(dir.path()).expect("the lock went with the snapshot");
}

#[test]
fn later_changes_of_a_key_win_within_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(dir.path()).unwrap();
    write(
        &engine,
        [put(Cf::Raw, b"a", b"1"), Modify::Delete(Cf::Raw, b"a".to_vec()), put(Cf::Raw, b"b", b"1")],
    );
    write(&engine, [Modify::Delete(Cf::Raw, b"b".to_vec()), put(Cf::Raw, b"b", b"2")]);
    let snapshot = engine.snapshot();
    assert_eq!(snapshot.get(Cf::Raw, b"a").unwrap(), None);
    assert_eq!(snapshot.get(Cf::Raw, b"b").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_second_opening_is_refused_as_locked() {
    let dir = tempfile::tempdir().unwrap();
    let _engine = RocksEngine::open(dir.path()).unwrap();
    assert!(matches!(refusal(dir.path()), OpenError::Locked { path } if path == dir.path()));
}

const OPEN_THIS: &str = "STORAGE_PIPELINE_TEST_OPENS";

/// The other process of the next test; nothing by itself.
#[test]
fn another_process_opens_what_it_is_told_to() {
    let Some(dir) = std::env::var_os(OPEN_THIS) else { return };
    assert!(matches!(refusal(Path::new(&dir)), OpenError::Locked { .. }));
    println!("refused as locked");
}

#[test]
fn another_process_is_refused_as_locked() {
    let dir = tempfile::tempdir().unwrap();
    let _engine = RocksEngine::open(dir.path()).unwrap();
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["another_process_opens_what_it_is_told_to", "--nocapture"])
        .env(OPEN_THIS, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&other.stdout);
    assert!(said.contains("refused as locked"), "{said}");
}

#[test]
fn a_format_that_is_newer_older_unreadable_or_missing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let set = |value: Option<&[u8]>| {
        let engine = RocksEngine::open(dir.path()).unwrap();
        write(&engine, [put(Cf::Raw, b"k", b"v")]);
        let change = match value {
            Some(value) => put(Cf::Meta, FORMAT_KEY, value),
            None => Modify::Delete(Cf::Meta, FORMAT_KEY.to_vec()),
        };
        write(&engine, [change]);
    };
    let repair = || {
        let families = Cf::ALL.map(|cf| ColumnFamilyDescriptor::new(cf.name(), Default::default()));
        let db = Db::open_cf_descriptors(&Default::default(), dir.path(), families).unwrap();
        db.put_cf_opt(family(&db, Cf::Meta), FORMAT_KEY, [0, 0, 0, 2], &WriteOptions::default()).unwrap();
    };
    set(Some(&[0, 0, 0, 3]));
    let error = refusal(dir.path());
    assert!(matches!(&error, OpenError::NewerFormat { found: 3, supported: 2, .. }), "{error}");
    repair();
    set(Some(&[0, 0, 0, 1]));
    let error = refusal(dir.path());
    assert!(matches!(&error, OpenError::OlderFormat { found: 1, supported: 2, .. }), "{error}");
    repair();
    for bad in [Some(&[0, 0, 0, 0][..]), Some(&[1]), None] {
        set(bad);
        let error = refusal(dir.path());
        assert!(matches!(&error, OpenError::Corrupt { path, .. } if path == dir.path()), "{error}");
        assert!(error.to_string().contains("format"), "{error}");
        repair();
    }
    RocksEngine::open(dir.path()).unwrap();
}

#[test]
fn damage_is_refused_with_the_path() {
    let dir = tempfile::tempdir().unwrap();
    drop(RocksEngine::open(dir.path()).unwrap());
    let files = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let manifest = files.filter(|path| path.to_string_lossy().contains("MANIFEST")).max().unwrap();
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[20] ^= 1;
    fs::write(&manifest, bytes).unwrap();
    let error = refusal(dir.path());
    assert!(matches!(&error, OpenError::Corrupt { path, .. } if path == dir.path()), "{error}");
}

#[test]
fn a_directory_that_cannot_be_made_is_refused_with_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(matches!(refusal(&file.join("data")), OpenError::Io { path, .. } if path.starts_with(&file)));
}

#[test]
fn a_power_loss_takes_whole_batches_and_none_that_a_sync_came_after() {
    const RECORD: usize = 1024;
    const PAGE: usize = 4096;
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let engine = RocksEngine::open(dir.path()).unwrap();
    let wal = newest_wal(dir.path());
    let len = || usize::try_from(fs::metadata(&wal).unwrap().len()).unwrap();
    // Records of one length, so that pages and blocks begin with records.
    let sized = |n: u32, bytes: usize| {
        let halves = [bytes / 2, bytes - bytes / 2].map(|half| vec![7; half]);
        let key = |half: u8| [&n.to_be_bytes()[..], &[half]].concat();
        write(&engine, [put(Cf::Raw, &key(0), &halves[0]), put(Cf::Raw, &key(1), &halves[1])]);
    };
    let before = len();
    sized(0, RECORD);
    let overhead = len() - before - RECORD;
    sized(1, 2 * RECORD - len() % RECORD - overhead);
    for n in 2..200 {
        sized(n, RECORD - overhead);
        if n == 100 {
            engine.sync().unwrap();
        }
    }
    assert_eq!(len() % RECORD, 0);
    let bytes = fs::read(&wal).unwrap();
    let synced = bytes.len() / RECORD - (200 - 101);
    for page in (synced.div_ceil(PAGE / RECORD)..bytes.len() / PAGE).step_by(3) {
        for file in fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()) {
            fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
        }
        let mut bytes = bytes.clone();
        bytes[page * PAGE..(page + 1) * PAGE].fill(0);
        fs::write(copy.path().join(wal.file_name().unwrap()), bytes).unwrap();
        let snapshot = RocksEngine::open(copy.path()).unwrap().snapshot();
        let there = |n: u32, half| {
            snapshot.get(Cf::Raw, &[&n.to_be_bytes()[..], &[half]].concat()).unwrap().is_some()
        };
        assert!((0..=100).all(|n| there(n, 0)), "page {page}");
        assert!((0..200).all(|n| there(n, 0) == there(n, 1)), "page {page}");
        assert!(!(0..200).all(|n| there(n, 0)), "page {page}");
        drop(snapshot);
        fs::remove_dir_all(copy.path()).unwrap();
        fs::create_dir(copy.path()).unwrap();
    }
}
