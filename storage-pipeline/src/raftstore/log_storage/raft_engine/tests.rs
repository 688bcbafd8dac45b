//! Tests of the log on raft-engine: torn at every byte, damaged at every byte, syncs counted and failed, files given
//! back.

use std::{fs, path::PathBuf};

use super::{
    super::{
        Position,
        tests::{entries, entry, state},
    },
    tail::{FILE_HEADER, HEADER, files, whole},
    *,
};

/// A copy of the log's files as a process leaves them that dies with the log open, and the newest of them.
fn crash(writes: &[Vec<Entry>]) -> (tempfile::TempDir, PathBuf) {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut log = RaftEngineLog::open(dir.path()).unwrap();
    for entries in writes {
        log.write(&[LogWrite { entries, sync: true, ..LogWrite::default() }]).unwrap();
    }
    copy_files(dir.path(), copy.path());
    let newest = newest(copy.path());
    (copy, newest)
}

fn copy_files(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

fn newest(dir: &Path) -> PathBuf {
    files(dir, "raftlog").unwrap().pop().unwrap().1
}

fn last_index(dir: &Path) -> u64 {
    RaftEngineLog::open(dir).unwrap().recover(FIRST_REGION).unwrap().last_index
}

/// Opens a copy of a directory, whose newest file holds these bytes.
fn open_with(dir: &Path, file: &Path, bytes: &[u8]) -> Result<u64, OpenError> {
    let copy = tempfile::tempdir().unwrap();
    copy_files(dir, copy.path());
    fs::write(copy.path().join(file.file_name().unwrap()), bytes).unwrap();
    let index =
        RaftEngineLog::open(copy.path()).map(|mut log| log.recover(FIRST_REGION).unwrap().last_index)?;
    assert_eq!(last_index(copy.path()), index, "opened once more");
    Ok(index)
}

/// The written part of a file, and where each of its records ends.
fn records(file: &Path) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = fs::read(file).unwrap();
    bytes.truncate(whole(&bytes, 1));
    let mut ends = vec![FILE_HEADER.len()];
    while ends[ends.len() - 1] < bytes.len() {
        let at = ends[ends.len() - 1];
        let length = u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap()) >> 8;
        ends.push(at + usize::try_from(length).unwrap());
    }
    (bytes, ends)
}

fn is_damage(result: Result<u64, OpenError>, file: &Path) {
    match result {
        Err(OpenError::Corrupt { path, .. }) => assert_eq!(path.file_name(), file.file_name()),
        other => panic!("damage was not refused: {other:?}"),
    }
}

#[test]
fn a_last_record_that_is_torn_or_bad_is_dropped_and_nothing_else() {
    let (dir, file) = crash(&[entries(1..3, 1), entries(3..4, 1), entries(4..5, 1)]);
    let (bytes, ends) = records(&file);
    let [.., begin, end] = ends[..] else { panic!("records: {ends:?}") };
    for at in begin..end {
        let mut zeroed = bytes.clone();
        zeroed[at..].fill(0);
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        let mut long = bytes[..at].to_vec();
        long.resize(bytes.len() + (1 << 16), 0);
        for (what, torn) in
            [("cut", &bytes[..at]), ("zeroed", &zeroed), ("flipped", &flipped), ("cut, zeros behind", &long)]
        {
            assert_eq!(whole(torn, 1), begin, "{what} at {at}");
            // Opening takes its time; some bytes of the header and of the rest will do.
            if at < begin + HEADER && at % 5 == 0 || at % 31 == 0 {
                assert_eq!(open_with(dir.path(), &file, torn).unwrap(), 3, "{what} at {at}");
            }
        }
    }
    assert_eq!(open_with(dir.path(), &file, &bytes).unwrap(), 4);
}

#[test]
fn a_torn_write_to_several_regions_is_dropped_in_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RaftEngineLog::open(dir.path()).unwrap();
    let first = entries(1..3, 1);
    let begin =
        [1, 2, 9].map(|region| LogWrite { region, entries: &first, sync: true, ..LogWrite::default() });
    log.write(&begin).unwrap();
    // One region begins anew in the same write.
    let (again, hard_state) = (entries(3..5, 1), state(1, 0));
    let truncated = Some(Position { index: 7, term: 1 });
    let append = |region| LogWrite { region, entries: &again, sync: true, ..LogWrite::default() };
    let hard_state = hard_state.as_ref();
    let restart = LogWrite { region: 2, hard_state, truncated, restart: true, ..LogWrite::default() };
    log.write(&[append(1), restart, append(9)]).unwrap();
    let file = newest(dir.path());
    let (bytes, ends) = records(&file);
    let [.., begin, end] = ends[..] else { panic!("records: {ends:?}") };
    let last = |bytes: &[u8]| {
        let copy = tempfile::tempdir().unwrap();
        copy_files(dir.path(), copy.path());
        fs::write(copy.path().join(file.file_name().unwrap()), bytes).unwrap();
        let mut log = RaftEngineLog::open(copy.path()).unwrap();
        [1, 2, 9].map(|region| log.recover(region).unwrap().last_index)
    };
    for at in (begin..end).step_by(5) {
        assert_eq!(last(&bytes[..at]), [2; 3], "cut at {at}");
    }
    assert_eq!(last(&bytes), [4, 7, 4]);
}

#[test]
fn a_bad_byte_before_the_last_record_is_refused() {
    let (dir, file) = crash(&[entries(1..3, 1), entries(3..4, 1), entries(4..5, 1)]);
    let (bytes, ends) = records(&file);
    let copy = tempfile::tempdir().unwrap();
    for at in 0..ends[ends.len() - 2] {
        for bits in [0x01, 0x80] {
            let mut bad = bytes.clone();
            bad[at] ^= bits;
            fs::write(copy.path().join(file.file_name().unwrap()), &bad).unwrap();
            is_damage(tail::look_through(copy.path()).map(|()| 0), &file);
        }
    }
    for pair in ends[..ends.len() - 1].windows(2) {
        let mut hole = bytes.clone();
        hole[pair[0]..pair[1]].fill(0);
        is_damage(open_with(dir.path(), &file, &hole), &file);
    }
}

#[test]
fn a_torn_file_with_a_later_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RaftEngineLog::open_sized(dir.path(), 1 << 10, 1 << 20).unwrap();
    for index in 1..9 {
        log.write(&[LogWrite { entries: &[entry(index, 1, 500)], sync: true, ..LogWrite::default() }])
            .unwrap();
    }
    drop(log);
    let (_, first) = files(dir.path(), "raftlog").unwrap().swap_remove(0);
    let bytes = fs::read(&first).unwrap();
    is_damage(open_with(dir.path(), &first, &bytes[..bytes.len() - 1]), &first);
    assert_eq!(open_with(dir.path(), &first, &bytes).unwrap(), 8);
}

/// What a file held before it was used again looks like records, but is signed with another number.
#[test]
fn a_file_that_was_used_again_is_read_up_to_what_was_written_into_it_since() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RaftEngineLog::open_sized(dir.path(), 4 << 10, 8 << 10).unwrap();
    let truncated = |index| Some(Position { index, term: 1 });
    for index in 1..200 {
        let truncated = if index % 10 == 0 { truncated(index - 1) } else { None };
        let write =
            LogWrite { entries: &[entry(index, 1, 200)], truncated, sync: true, ..LogWrite::default() };
        log.write(&[write]).unwrap();
    }
    let copy = tempfile::tempdir().unwrap();
    copy_files(dir.path(), copy.path());
    let (number, newest) = files(copy.path(), "raftlog").unwrap().pop().unwrap();
    assert!(number > 5, "files were used up: {number}");
    let bytes = fs::read(&newest).unwrap();
    let end = whole(&bytes, number as u32);
    assert!(bytes[end..].iter().any(|byte| *byte != 0), "the file was used before");
    assert_eq!(last_index(copy.path()), 199);
}

#[test]
fn a_log_that_is_open_is_locked_even_if_it_looks_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RaftEngineLog::open(dir.path()).unwrap();
    for index in 1..4 {
        log.write(&[LogWrite { entries: &entries(index..index + 1, 1), sync: true, ..LogWrite::default() }])
            .unwrap();
    }
    let locked =
        |dir| matches!(RaftEngineLog::open(dir).err(), Some(OpenError::Locked { path }) if path == *dir);
    assert!(locked(dir.path()));
    let file = newest(dir.path());
    let mut bad = fs::read(&file).unwrap();
    bad[FILE_HEADER.len() + 20] ^= 1;
    fs::write(&file, &bad).unwrap();
    assert!(locked(dir.path()));
    drop(log);
    is_damage(RaftEngineLog::open(dir.path()).map(|_| 0), &file);
}

#[test]
fn another_format_and_undecodable_states_are_refused() {
    for (key, value, words) in [
        (FORMAT_KEY, &3u32.to_be_bytes()[..], "newer"),
        (FORMAT_KEY, &1u32.to_be_bytes(), "older"),
        (HARD_STATE_KEY, &[1, 2, 3], "hard state"),
        (TRUNCATED_KEY, &[0; 15], "truncated"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let log = RaftEngineLog::open(dir.path()).unwrap();
        let mut batch = LogBatch::default();
        batch.put(FIRST, key.to_vec(), value.to_vec()).unwrap();
        log.write_batch(&mut batch, true).unwrap();
        drop(log);
        let error = RaftEngineLog::open(dir.path()).err().expect(words).to_string();
        assert!(error.contains(words) && error.contains(&dir.path().display().to_string()), "{error}");
    }
}

#[test]
fn each_write_that_asks_for_it_is_synced_once_and_a_failed_sync_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RaftEngineLog::open(dir.path()).unwrap();
    let syncs = Arc::clone(&log.syncs);
    let opened = syncs.succeeded();
    assert!(opened > 0, "the recovered log is synced before it is handed out");
    for (index, sync, expected) in [(1, true, 1), (2, false, 1), (3, true, 2)] {
        log.write(&[LogWrite { entries: &entries(index..index + 1, 1), sync, ..LogWrite::default() }])
            .unwrap();
        assert_eq!(syncs.succeeded(), opened + expected);
    }
    log.sync().unwrap();
    assert_eq!(syncs.succeeded(), opened + 3);
    syncs.fail_next();
    let write = LogWrite { entries: &entries(4..5, 1), sync: true, ..LogWrite::default() };
    log.write(&[write]).unwrap_err();
    log.sync().expect_err("the first failure stays");
}

#[test]
fn forgotten_entries_are_given_back_and_states_outlive_the_files_they_were_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RaftEngineLog::open_sized(dir.path(), 256 << 10, 1 << 20).unwrap();
    let hard_state = state(1, 0);
    log.write(&[LogWrite { hard_state: hard_state.as_ref(), ..LogWrite::default() }]).unwrap();
    for index in 1..1600 {
        let truncated = (index % 100 == 0).then_some(Position { index: index - 1, term: 1 });
        let write = LogWrite { entries: &[entry(index, 1, 4 << 10)], truncated, ..LogWrite::default() };
        log.write(&[write]).unwrap();
    }
    drop(log);
    let bytes: u64 =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 4 << 20, "{bytes} bytes are left of 6 MiB");
    let mut log = RaftEngineLog::open_sized(dir.path(), 256 << 10, 1 << 20).unwrap();
    let Recovered { hard_state: found, truncated, last_index } = log.recover(FIRST_REGION).unwrap();
    assert_eq!((Some(found), truncated.index, last_index), (hard_state, 1499, 1599));
    assert_eq!(log.entries(FIRST_REGION, 1500, 1600, u64::MAX).unwrap().len(), 100);
}

/// Its entries move to newer files with those that others have forgotten around them.
#[test]
fn a_quiet_region_keeps_its_log_however_much_a_busy_one_writes_and_forgets() {
    let dir = tempfile::tempdir().unwrap();
    let open = || RaftEngineLog::open_sized(dir.path(), 64 << 10, 256 << 10).unwrap();
    let mut log = open();
    let (quiet, hard_state) = (entries(1..6, 1), state(1, 3));
    let write =
        LogWrite { region: 2, entries: &quiet, hard_state: hard_state.as_ref(), ..LogWrite::default() };
    log.write(&[write]).unwrap();
    let first = newest(dir.path());
    for index in 1..800 {
        let truncated = (index % 50 == 0).then_some(Position { index: index - 1, term: 1 });
        let write = LogWrite { entries: &[entry(index, 1, 4 << 10)], truncated, ..LogWrite::default() };
        log.write(&[write]).unwrap();
    }
    assert!(!first.exists(), "the file that it was written to was given back");
    for _ in 0..2 {
        let found = log.recover(2).unwrap();
        assert_eq!(
            (Some(found.hard_state), found.truncated.index, found.last_index),
            (hard_state.clone(), 0, 5)
        );
        assert_eq!(log.entries(2, 1, 6, u64::MAX).unwrap(), quiet);
        drop(log);
        log = open();
    }
}
