//! Holes in the data: a power loss that takes some of the writes since the last sync and leaves later ones, where
//! RocksDB sees nothing missing. It is built by hand, because records have to lie just so.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use storage_pipeline::{
    CompletionMode, OpenError, Storage,
    engine::{Cf, Engine, rocks::RocksEngine},
    observe::{FailPoint, Moment, Observe},
    storage::Parts,
};
use tempfile::TempDir;

use super::{
    loss::{read_tree, write_tree},
    scratch,
};
use crate::support::{Tested, config, in_every_mode, wait_for};

/// Bytes of one write in the write-ahead log, so that pages and blocks begin with records.
const RECORD: usize = 1024;
const PAGE: usize = 4096;
/// RocksDB's block, whose beginning a record never crosses.
const BLOCK: usize = 32 << 10;
const BLOCKS: usize = 4;

/// What a power loss does to the data's write-ahead log.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// A page was never written, in the middle of a file that was made longer.
    MissingPage { at: usize },
    /// A file ends with a whole record, and the next one begins with what came long after.
    MissingEnd { at: usize, next: usize },
}

const DAMAGES: [Damage; 5] = [
    Damage::MissingPage { at: 2 * BLOCK },
    Damage::MissingEnd { at: BLOCK + 5 * RECORD, next: 3 * BLOCK },
    Damage::MissingPage { at: BLOCK + 3 * PAGE },
    Damage::MissingEnd { at: BLOCK, next: 2 * BLOCK },
    Damage::MissingPage { at: 3 * BLOCK - PAGE },
];

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The directory as the operating system has it, without a sync or a close of the data, and everything that was acknowledged.
fn written(mode: CompletionMode, dir: &Path) -> (TempDir, Model) {
    let tested = Tested::open(config(mode, dir));
    let wal = newest_wal(dir);
    let len = || usize::try_from(fs::metadata(&wal).unwrap().len()).unwrap();
    let mut acknowledged = Model::new();
    // Half of the keys are written once, so that a missing one is seen; half again and again, so that an older value in the
    // place of a newer one is.
    let mut put = |n: usize, bytes: usize| {
        let key = format!("key-{:03}", if n.is_multiple_of(2) { n } else { 500 + n % 30 }).into_bytes();
        let value = format!("{n:.<bytes$}").into_bytes();
        assert!(tested.storage.raw_put(&key, &value).is_applied());
        acknowledged.insert(key, value);
    };
    let before = len();
    put(0, RECORD);
    let overhead = len() - before - RECORD;
    put(1, 2 * RECORD - len() % RECORD - overhead);
    assert_eq!(len() % RECORD, 0, "all of a record's overhead is known");
    (2..).take_while(|_| len() < BLOCKS * BLOCK).for_each(|n| put(n, RECORD - overhead));
    assert_eq!(len(), BLOCKS * BLOCK);
    let image = scratch();
    write_tree(&read_tree(dir).unwrap(), image.path()).unwrap();
    fs::write(image.path().join("data/LOCK"), b"").unwrap();
    tested.finish();
    (image, acknowledged)
}

fn files(dir: &Path, extension: &str) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(dir.join("data")).unwrap().map(|entry| entry.unwrap().path());
    let extension = extension.to_owned();
    files.filter(move |path| path.extension().is_some_and(|found| *found == *extension))
}

fn newest_wal(dir: &Path) -> PathBuf {
    files(dir, "log").max().unwrap()
}

fn damage(dir: &Path, damage: Damage) {
    let wal = newest_wal(dir);
    let mut bytes = fs::read(&wal).unwrap();
    match damage {
        Damage::MissingPage { at } => bytes[at..at + PAGE].fill(0),
        Damage::MissingEnd { at, next } => {
            let number = |path: &Path| path.file_stem()?.to_str()?.parse::<u64>().ok();
            let newest = ["log", "sst"].into_iter().flat_map(|extension| files(dir, extension));
            let newest = newest.filter_map(|path| number(&path)).max().unwrap();
            fs::write(dir.join(format!("data/{:06}.log", newest + 1)), &bytes[next..]).unwrap();
            bytes.truncate(at);
        }
    }
    fs::write(&wal, bytes).unwrap();
}

/// The raw keys, past the pipeline.
fn data(dir: &Path) -> Model {
    let snapshot = RocksEngine::open(&dir.join("data")).unwrap().snapshot();
    let mut cursor = snapshot.cursor(Cf::Raw, b"", b"");
    cursor.seek_to_first().unwrap();
    let mut found = Model::new();
    while let Some((key, value)) = cursor.entry() {
        found.insert(key.to_vec(), value.to_vec());
        cursor.next().unwrap();
    }
    found
}

/// Counts batches and makes one of them fail.
#[derive(Default)]
struct Batches {
    first: AtomicU64,
    begun: AtomicU64,
    /// None, where it is zero.
    fails: u64,
}

impl Observe for Batches {
    fn moment(&self, moment: Moment) {
        if let Moment::Applying { index, .. } = moment {
            let _ = self.first.compare_exchange(0, index, Ordering::Relaxed, Ordering::Relaxed);
            self.begun.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn fails(&self, point: FailPoint) -> bool {
        point == FailPoint::DataWrite && self.begun.load(Ordering::Relaxed) == self.fails
    }
}

fn open(mode: CompletionMode, dir: &Path, batches: &Arc<Batches>) -> Result<Storage, OpenError> {
    let mut config = config(mode, dir);
    // So that a replay takes many batches.
    config.max_apply_bytes = 8 * RECORD as u64;
    let parts = Parts::on_disk(dir)?;
    Storage::open_with(config, parts, Some(Arc::clone(batches) as _))
}

fn check(storage: &Storage, acknowledged: &Model) {
    for (key, value) in acknowledged {
        let found = storage.raw_get(key).into_result().unwrap();
        assert!(found.as_ref() == Some(value), "{} is lost", key.escape_ascii());
    }
    assert!(storage.raw_put(b"again", b"v").is_applied());
}

#[test]
fn writes_that_a_power_loss_takes_from_the_middle_come_back_from_the_log() {
    in_every_mode(|mode, dir| {
        let (image, acknowledged) = written(mode, dir);
        let dir = image.path();
        // What is read at an opening does not depend on the mode.
        let kind = DAMAGES[mode as usize];
        damage(dir, kind);
        let left = data(dir);
        assert!(left != acknowledged, "{kind:?} took nothing");
        let newest = |model: &Model| model.values().map(|value| number(value)).max();
        assert_eq!(newest(&left), newest(&acknowledged), "{kind:?} left a prefix: no hole");
        let storage = open(mode, dir, &Arc::default()).unwrap();
        check(&storage, &acknowledged);
    });
}

fn number(value: &[u8]) -> usize {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

#[test]
fn a_replay_that_ends_in_its_middle_begins_again_and_nobody_reads_before_its_end() {
    in_every_mode(|mode, dir| {
        let (image, acknowledged) = written(mode, dir);
        let dir = image.path();
        damage(dir, DAMAGES[0]);
        for fails in [5, 9] {
            let batches = Arc::new(Batches { fails, ..Batches::default() });
            match open(mode, dir, &batches) {
                Err(OpenError::NotReady { what, .. }) => assert!(what.contains("injected"), "{what}"),
                other => panic!("opened before its log was applied: {other:?}"),
            }
        }
        let last = Arc::new(Batches::default());
        let storage = open(mode, dir, &last).unwrap();
        assert!(last.first.load(Ordering::Relaxed) < 20, "not from where the data is whole");
        check(&storage, &acknowledged);
    });
}

#[test]
fn a_close_leaves_nothing_to_replay_and_a_kill_what_was_written_since_the_last_sync() {
    in_every_mode(|mode, dir| {
        let before = {
            let tested = Tested::open(config(mode, dir));
            (0..50).for_each(|n| assert!(tested.storage.raw_put(&[n], b"v").is_applied()));
            wait_for("quiescence", || tested.storage.in_flight().is_quiescent());
            let before = tested.storage.applied_index();
            tested.finish();
            before
        };
        let tree = read_tree(dir).unwrap();
        let first = |dir: &Path| {
            let batches = Arc::new(Batches::default());
            let storage = open(mode, dir, &batches).unwrap();
            let known = storage.raw_get(&[19]).into_result().unwrap();
            assert!([b"v".to_vec(), vec![19; 4096]].contains(&known.unwrap()));
            (0..20).for_each(|n| assert!(storage.raw_put(&[n], &[n; 4096]).is_applied()));
            let killed = scratch();
            write_tree(&read_tree(dir).unwrap(), killed.path()).unwrap();
            (batches.first.load(Ordering::Relaxed), killed)
        };
        let closed = scratch();
        write_tree(&tree, closed.path()).unwrap();
        let (index, killed) = first(closed.path());
        assert_eq!(index, before + 1);
        let (index, _) = first(killed.path());
        assert!((before + 1..before + 10).contains(&index), "{index}: the first batch since entry {before}");
    });
}
