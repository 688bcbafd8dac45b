//! Tests of the look through the write-ahead log, on files that RocksDB wrote: torn at every byte, damaged at every
//! byte.

use crate::region::FIRST_REGION;
use std::{fs, path::PathBuf};

use super::{
    super::{
        LogEngine, LogWrite, RocksLog,
        tests::{entries, entry},
    },
    *,
};
use crate::engine::rocks::tests::wal_syncs;

/// A copy of the log's files as a process leaves them that dies with the log open.
fn crash(writes: &[Vec<raft::eraftpb::Entry>]) -> (tempfile::TempDir, PathBuf) {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut log = RocksLog::open(dir.path()).unwrap();
    for entries in writes {
        log.write(&[LogWrite { entries, sync: true, ..LogWrite::default() }]).unwrap();
    }
    for file in fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    let wal = files(copy.path()).unwrap().pop().unwrap();
    (copy, wal)
}

fn last_index(dir: &Path) -> u64 {
    RocksLog::open(dir).unwrap().recover(FIRST_REGION).unwrap().last_index
}

/// Opens a copy of a directory, whose newest write-ahead log holds these bytes.
fn open_with(dir: &Path, wal: &Path, bytes: &[u8]) -> Result<u64, OpenError> {
    let copy = tempfile::tempdir().unwrap();
    for file in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    fs::write(copy.path().join(wal.file_name().unwrap()), bytes).unwrap();
    RocksLog::open(copy.path()).map(|mut log| log.recover(FIRST_REGION).unwrap().last_index)
}

/// Where each record of a file ends.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = vec![0];
    while let Some(record) = Record::at(bytes, ends[ends.len() - 1]) {
        ends.push(record.end);
    }
    ends
}

fn is_damage(result: Result<u64, OpenError>, wal: &Path) {
    match result {
        Err(OpenError::Corrupt { path, .. }) => assert_eq!(path.file_name(), wal.file_name()),
        other => panic!("damage was not refused: {other:?}"),
    }
}

#[test]
fn the_checksum_is_the_one_of_the_standard() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_are_never_whole_and_never_panic(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300), zeros in 0..2 * BLOCK,
    ) {
        let bytes = [bytes, vec![0; zeros]].concat();
        let whole = Whole::of(&bytes, u64::MAX);
        proptest::prop_assert_eq!((whole.end, whole.first, later_write(&bytes, &whole)), (0, None, None));
    }
}

#[test]
fn a_process_that_dies_loses_nothing_and_zeros_ahead_are_no_damage() {
    let (dir, wal) = crash(&[entries(1..4, 1), entries(4..5, 1)]);
    let bytes = fs::read(&wal).unwrap();
    assert!(
        bytes.ends_with(&[0; 1024]) && bytes.len() % BLOCK == 0,
        "the file is longer than what is written"
    );
    assert_eq!(look_through(dir.path()).unwrap(), Tail::Clean);
    assert_eq!(last_index(dir.path()), 4);
    assert_eq!(last_index(dir.path()), 4);
}

#[test]
fn a_clean_close_cuts_the_zeros_off() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RocksLog::open(dir.path()).unwrap();
    log.write(&[LogWrite { entries: &entries(1..3, 1), sync: true, ..LogWrite::default() }]).unwrap();
    drop(log);
    let wal = files(dir.path()).unwrap().pop().unwrap();
    assert!(fs::metadata(&wal).unwrap().len() < 1024);
    assert_eq!(last_index(dir.path()), 2);
}

#[test]
fn a_last_record_that_is_torn_or_bad_is_dropped_and_nothing_else() {
    let (dir, wal) = crash(&[entries(1..3, 1), entries(3..4, 1), entries(4..5, 1)]);
    let bytes = fs::read(&wal).unwrap();
    let ends = ends(&bytes);
    let [.., begin, end] = ends[..] else { panic!("records: {ends:?}") };
    for at in begin..end {
        let mut zeroed = bytes.clone();
        zeroed[at..end].fill(0);
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        for (what, torn) in [
            ("cut", &bytes[..at]),
            ("zeroed", &zeroed),
            ("flipped", &flipped),
            ("flipped, cut", &flipped[..end]),
        ] {
            let whole = Whole::of(torn, 0);
            assert_eq!((whole.end, later_write(torn, &whole)), (begin, None), "{what} at {at}");
            // Opening takes its time; every byte of the header and some of the rest will do.
            if at < begin + HEADER || at % 11 == 0 {
                assert_eq!(open_with(dir.path(), &wal, torn).unwrap(), 3, "{what} at {at}");
            }
        }
    }
    assert_eq!(open_with(dir.path(), &wal, &bytes[..end]).unwrap(), 4);
}

#[test]
fn a_torn_write_to_several_regions_is_dropped_in_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RocksLog::open(dir.path()).unwrap();
    let write = |log: &mut RocksLog, entries: &[raft::eraftpb::Entry]| {
        log.write(&[1, 2, 9].map(|region| LogWrite { region, entries, sync: true, ..LogWrite::default() }))
            .unwrap();
    };
    write(&mut log, &entries(1..3, 1));
    // One region begins anew in the same write.
    let (again, state) = (entries(3..5, 1), crate::raftstore::log_storage::tests::state(1, 0));
    let truncated = Some(crate::raftstore::log_storage::Position { index: 7, term: 1 });
    let append = |region| LogWrite { region, entries: &again, sync: true, ..LogWrite::default() };
    let restart =
        LogWrite { region: 2, hard_state: state.as_ref(), truncated, restart: true, ..LogWrite::default() };
    log.write(&[append(1), restart, append(9)]).unwrap();
    let wal = files(dir.path()).unwrap().pop().unwrap();
    let bytes = fs::read(&wal).unwrap();
    let [.., begin, end] = ends(&bytes)[..] else { panic!("two records at least") };
    let last = |bytes: &[u8]| {
        let copy = tempfile::tempdir().unwrap();
        for file in fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()) {
            fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
        }
        fs::write(copy.path().join(wal.file_name().unwrap()), bytes).unwrap();
        let mut log = RocksLog::open(copy.path()).unwrap();
        [1, 2, 9].map(|region| log.recover(region).unwrap().last_index)
    };
    for at in (begin..end).step_by(5) {
        assert_eq!(last(&bytes[..at]), [2; 3], "cut at {at}");
    }
    assert_eq!(last(&bytes[..end]), [4, 7, 4]);
}

#[test]
fn a_bad_byte_before_the_last_record_is_refused() {
    let (dir, wal) = crash(&[entries(1..3, 1), entries(3..4, 1), entries(4..5, 1)]);
    let bytes = fs::read(&wal).unwrap();
    let ends = ends(&bytes);
    let end = ends[ends.len() - 2];
    for at in 0..end {
        for bits in [0x01, 0x80] {
            let mut bad = bytes.clone();
            bad[at] ^= bits;
            is_damage(open_with(dir.path(), &wal, &bad), &wal);
            is_damage(open_with(dir.path(), &wal, &bad[..*ends.last().unwrap()]), &wal);
        }
    }
    for pair in ends[..ends.len() - 1].windows(2) {
        let mut hole = bytes.clone();
        hole[pair[0]..pair[1]].fill(0);
        is_damage(open_with(dir.path(), &wal, &hole), &wal);
    }
}

#[test]
fn a_long_record_is_torn_whichever_of_its_blocks_is_missing() {
    let (dir, wal) = crash(&[entries(1..3, 1), vec![entry(3, 1, 4 * BLOCK)]]);
    let bytes = fs::read(&wal).unwrap();
    let (begin, end) = (ends(&bytes)[2], ends(&bytes)[7]);
    assert_eq!(open_with(dir.path(), &wal, &bytes).unwrap(), 3);
    for block in begin / BLOCK..=end / BLOCK {
        let mut torn = bytes.clone();
        torn[begin.max(block * BLOCK)..end.min((block + 1) * BLOCK)].fill(0);
        assert_eq!(open_with(dir.path(), &wal, &torn).unwrap(), 2, "block {block}");
    }
}

#[test]
fn damage_is_refused_before_and_inside_of_a_long_record() {
    for damaged in [20, 2 * BLOCK + 100] {
        let (dir, wal) =
            crash(&[entries(1..3, 1), vec![entry(3, 1, 4 * BLOCK)], vec![entry(4, 1, 2 * BLOCK)]]);
        let mut bad = fs::read(&wal).unwrap();
        bad[damaged] ^= 1;
        is_damage(open_with(dir.path(), &wal, &bad), &wal);
    }
}

/// The data of a long entry can look like the beginning of a later write where one of its blocks begins.
#[test]
fn the_rest_of_a_torn_record_is_not_taken_for_a_later_write() {
    for shift in 0..8 {
        let mut long = entry(1, 1, 0);
        long.data = (0..3 * BLOCK).map(|at| if at % 8 == shift { 100 } else { 0 }).collect();
        let (dir, wal) = crash(&[vec![long]]);
        let mut torn = fs::read(&wal).unwrap();
        let begin = ends(&torn)[1];
        torn[begin..BLOCK].fill(0);
        assert_eq!(open_with(dir.path(), &wal, &torn).unwrap(), 0);
    }
}

#[test]
fn a_torn_file_may_be_followed_by_one_that_goes_on_where_it_was_but_not_by_a_later_one() {
    let (dir, wal) = crash(&[entries(1..3, 1), entries(3..4, 1), entries(4..5, 1)]);
    let bytes = fs::read(&wal).unwrap();
    let [.., before, torn, end] = ends(&bytes)[..] else { panic!("three records at least") };
    fs::write(&wal, &bytes[..torn - 1]).unwrap();
    let next = dir.path().join("999999.log");
    for goes_on in [&[][..], &bytes[before..torn], &bytes[before..end]] {
        fs::write(&next, goes_on).unwrap();
        assert!(matches!(look_through(dir.path()).unwrap(), Tail::Torn { at, .. } if at == before));
    }
    fs::write(&next, &bytes[torn..end]).unwrap();
    let error = look_through(dir.path()).unwrap_err();
    assert!(matches!(&error, OpenError::Corrupt { path, .. } if *path == wal), "{error}");
}

/// A torn write is dropped by a recovery that itself may die at any time: RocksDB marks the new file first, and deletes
/// the torn one last.
#[test]
fn a_recovery_from_a_torn_write_that_dies_can_be_repeated() {
    let (dir, wal) = crash(&[entries(1..3, 1), entries(3..4, 1)]);
    let bytes = fs::read(&wal).unwrap();
    let torn = &bytes[..ends(&bytes).last().unwrap() - 1];
    fs::write(&wal, torn).unwrap();
    assert_eq!(last_index(dir.path()), 2);
    assert!(!wal.exists(), "the torn file is gone");
    // As if it had not been deleted yet.
    fs::write(&wal, torn).unwrap();
    assert_eq!(last_index(dir.path()), 2);
}

#[test]
fn a_log_that_is_open_is_locked_even_if_it_looks_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RocksLog::open(dir.path()).unwrap();
    for index in 1..4 {
        log.write(&[LogWrite { entries: &entries(index..index + 1, 1), sync: true, ..LogWrite::default() }])
            .unwrap();
    }
    let locked = |dir| matches!(RocksLog::open(dir).err(), Some(OpenError::Locked { path }) if path == *dir);
    assert!(locked(dir.path()));
    let wal = files(dir.path()).unwrap().pop().unwrap();
    let bytes = fs::read(&wal).unwrap();
    let mut bad = bytes.clone();
    bad[30] ^= 1;
    fs::write(&wal, &bad).unwrap();
    assert!(locked(dir.path()));
}

#[test]
fn another_format_and_undecodable_states_are_refused() {
    for (key, value, words) in [
        (&b"\0f"[..], &3u32.to_be_bytes()[..], "newer"),
        (b"\0f", &1u32.to_be_bytes(), "older"),
        (b"\0h\0\0\0\0\0\0\0\x01", &[1, 2, 3], "hard state"),
        (b"\0t\0\0\0\0\0\0\0\x01", &[0; 15], "truncated"),
        (b"\x01\0\0\0\0\0\0\0\x01x", &[], "unknown key"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        drop(RocksLog::open(dir.path()).unwrap());
        rocksdb::DB::open_default(dir.path()).unwrap().put(key, value).unwrap();
        let error = match RocksLog::open(dir.path()) {
            Err(error) => error.to_string(),
            Ok(mut log) => log.recover(FIRST_REGION).expect_err(words).to_string(),
        };
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn each_write_that_asks_for_it_is_synced_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = rocksdb::Options::default();
    let tune = |tuned: &mut rocksdb::Options| {
        tuned.enable_statistics();
        options = tuned.clone();
    };
    let mut log = RocksLog::open_tuned(dir.path(), tune).unwrap();
    let opened = wal_syncs(&options);
    assert!(opened > 0, "the recovered log is synced before it is handed out");
    for (index, sync, syncs) in [(1, true, 1), (2, false, 1), (3, true, 2)] {
        log.write(&[LogWrite { entries: &entries(index..index + 1, 1), sync, ..LogWrite::default() }])
            .unwrap();
        assert_eq!(wal_syncs(&options), opened + syncs);
    }
    log.sync().unwrap();
    assert_eq!(wal_syncs(&options), opened + 3);
}

#[test]
fn many_writes_fill_several_files_and_forgotten_entries_leave_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RocksLog::open(dir.path()).unwrap();
    // Three write buffers of entries, each forgotten soon after it was written.
    for index in 1..1600 {
        let truncated = (index % 100 == 0)
            .then_some(crate::raftstore::log_storage::Position { index: index - 1, term: 1 });
        let write = LogWrite { entries: &[entry(index, 1, 64 << 10)], truncated, ..LogWrite::default() };
        log.write(&[write]).unwrap();
    }
    drop(log);
    let bytes: u64 =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 64 << 20, "{bytes} bytes are left of 100 MiB");
    assert_eq!(last_index(dir.path()), 1599);
}
