//! Tests of the log: the same on every engine as in memory, nothing synced is lost, nothing is written after a fault.

use std::{path::Path, sync::Arc};

use parking_lot::Mutex;
use proptest::{collection::vec, prelude::*, sample::Index};
use raft::{
    GetEntriesContext, RawNode, Storage, StorageError,
    eraftpb::{ConfState, Entry, EntryType, HardState},
};
use slog::{Discard, Logger, o};

use super::*;

pub(super) fn entry(index: u64, term: u64, size: usize) -> Entry {
    Entry { index, term, data: vec![index as u8; size], ..Entry::default() }
}

pub(super) fn entries(range: std::ops::Range<u64>, term: u64) -> Vec<Entry> {
    range.map(|index| entry(index, term, 8)).collect()
}

pub(super) fn state(term: u64, commit: u64) -> Option<HardState> {
    Some(HardState { term, vote: 1, commit })
}

fn open(engine: impl LogEngine, applied: u64) -> Result<LogStorage, RecoverError> {
    let mut log = LogStorage::open(
        Box::new(engine) as Box<dyn LogEngine>,
        ConfState { voters: vec![1], ..ConfState::default() },
        applied,
    )?;
    log.apply_behind(applied);
    Ok(log)
}

/// Opens a log in a directory of its kind.
type OnDisk = fn(&Path, u64) -> LogStorage;

/// Every kind of log on disk.
const ON_DISK: &[OnDisk] = &[
    |dir, applied| open(RocksLog::open(&dir.join("rocksdb")).unwrap(), applied).unwrap(),
    #[cfg(feature = "raft-engine")]
    |dir, applied| open(RaftEngineLog::open(&dir.join("raft-engine")).unwrap(), applied).unwrap(),
];

/// One log of each kind on disk, and last the one in memory.
fn of_every_kind(dir: &Path, memory: &MemoryLog, applied: u64) -> Vec<LogStorage> {
    let memory = open(memory.clone(), applied).unwrap();
    ON_DISK.iter().map(|open| open(dir, applied)).chain([memory]).collect()
}

impl LogStorage {
    fn persist(
        &mut self,
        entries: Vec<Entry>,
        hard_state: Option<HardState>,
        sync: bool,
    ) -> Result<(), EngineError> {
        self.stage(entries, hard_state, sync)?;
        self.write_staged()
    }

    fn restart(
        &mut self,
        snapshot: Position,
        entries: Vec<Entry>,
        hard_state: Option<HardState>,
    ) -> Result<(), EngineError> {
        self.stage_restart(snapshot, entries, hard_state)?;
        self.write_staged()
    }
}

fn read(log: &LogStorage, low: u64, high: u64, max_bytes: u64) -> raft::Result<Vec<Entry>> {
    log.entries(low, high, max_bytes, GetEntriesContext::empty(false))
}

fn all(log: &LogStorage) -> Vec<Entry> {
    read(log, log.first_index().unwrap(), log.last_index().unwrap() + 1, u64::MAX).unwrap()
}

/// What raft can see of a log, with and without its memory.
fn view(log: &LogStorage) -> (HardState, Position, Vec<Entry>, Vec<u64>) {
    let (first, last) = (log.first_index().unwrap(), log.last_index().unwrap());
    let terms = (first - 1..=last).map(|index| log.term(index).unwrap()).collect();
    let stored = log.engine.entries(first, last + 1, u64::MAX).unwrap();
    assert_eq!(all(log), stored);
    (log.initial_state().unwrap().hard_state, log.truncated, stored, terms)
}

#[derive(Clone, Debug)]
enum Step {
    /// Appends so many entries of such a size, after cutting back to a place; in a later term where it is one.
    Append {
        back: Index,
        count: usize,
        size: usize,
        new_term: bool,
    },
    Commit(Index),
    Compact(Index),
    /// A snapshot of a later term takes the place of the log: behind what is committed, or beyond the end by a few.
    Restart {
        to: Index,
        count: usize,
    },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let sizes = prop_oneof![4 => 0..200usize, 1 => 30_000..80_000usize];
    prop_oneof![
        6 => (any::<Index>(), 0..9usize, sizes, any::<bool>())
            .prop_map(|(back, count, size, new_term)| Step::Append { back, count, size, new_term }),
        3 => any::<Index>().prop_map(Step::Commit),
        2 => any::<Index>().prop_map(Step::Compact),
        1 => (any::<Index>(), 0..4usize).prop_map(|(to, count)| Step::Restart { to, count }),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_log_on_disk_is_the_log_in_memory(steps in vec(step(), 1..30), limit in 0..400u64, low in any::<Index>()) {
        let dir = tempfile::tempdir().unwrap();
        let memory = MemoryLog::new();
        let mut logs = of_every_kind(dir.path(), &memory, 0);
        let mut hard_state = HardState { term: 1, vote: 1, commit: 0 };
        for step in steps {
            let log = logs.last().unwrap();
            let (truncated, last) = (log.truncated.index, log.last_index);
            match step {
                Step::Append { back, count, size, new_term } => {
                    let keep = (hard_state.commit..=last).nth(back.index((last - hard_state.commit + 1) as usize)).unwrap();
                    hard_state.term += u64::from(new_term || keep < last);
                    let new: Vec<_> = (keep + 1..).take(count).map(|index| entry(index, hard_state.term, size)).collect();
                    logs.iter_mut().for_each(|log| log.persist(new.clone(), Some(hard_state.clone()), true).unwrap());
                }
                Step::Commit(to) => {
                    hard_state.commit += to.index((last - hard_state.commit + 1) as usize) as u64;
                    logs.iter_mut().for_each(|log| log.persist(Vec::new(), Some(hard_state.clone()), false).unwrap());
                }
                Step::Restart { to, count } => {
                    let index = hard_state.commit + 1 + to.index((last - hard_state.commit + 5) as usize) as u64;
                    let term = hard_state.term + 1;
                    hard_state = HardState { term, vote: 0, commit: index };
                    let new: Vec<_> = (index + 1..).take(count).map(|index| entry(index, term, 20)).collect();
                    let place = Position { index, term };
                    logs.iter_mut().for_each(|log| log.restart(place, new.clone(), Some(hard_state.clone())).unwrap());
                }
                Step::Compact(to) => {
                    let to = truncated + to.index((hard_state.commit - truncated + 1) as usize) as u64;
                    logs.iter_mut().for_each(|log| log.compact(to).unwrap());
                }
                Step::Reopen => {
                    // The data was applied up to the commit index; the log need not have kept that index.
                    let applied = hard_state.commit;
                    drop(logs);
                    logs = of_every_kind(dir.path(), &memory, applied);
                }
            }
            let (memory, on_disk) = logs.split_last().unwrap();
            for disk in on_disk {
                prop_assert_eq!(view(disk), view(memory));
            }
        }
        let (memory, on_disk) = logs.split_last().unwrap();
        let low = memory.truncated.index + 1 + low.index((memory.last_index - memory.truncated.index + 1) as usize) as u64;
        let some = read(memory, low, memory.last_index + 1, limit).unwrap();
        prop_assert_eq!(some.is_empty(), low > memory.last_index);
        for disk in on_disk {
            prop_assert_eq!(&some, &disk.engine.entries(low, memory.last_index + 1, limit).unwrap());
            prop_assert_eq!(&some, &read(disk, low, memory.last_index + 1, limit).unwrap());
        }
    }

    #[test]
    fn a_power_loss_takes_nothing_that_was_synced(
        rounds in vec((1..5u64, any::<bool>(), 0..3u8), 1..20), seed in any::<Index>(),
    ) {
        let memory = MemoryLog::new();
        let mut log = open(memory.clone(), 0).unwrap();
        let mut synced = Vec::new();
        for (count, sync, kind) in rounds {
            let last = log.last_index;
            if kind == 0 && last > 0 {
                log.compact(1 + seed.index(last as usize) as u64).unwrap();
            }
            log.persist(entries(last + 1..last + 1 + count, 1), state(1, last), sync).unwrap();
            if sync {
                synced = all(&log);
            }
        }
        memory.lose_power();
        let lowest = synced.first().map_or(0, |entry| entry.index - 1);
        let log = open(memory, lowest).unwrap();
        let found = all(&log);
        prop_assert_eq!(&found[found.len() - synced.len()..], &synced[..]);
    }
}

#[test]
fn an_overwritten_suffix_is_gone_after_reopening() {
    for on_disk in ON_DISK {
        let dir = tempfile::tempdir().unwrap();
        let mut log = on_disk(dir.path(), 0);
        log.persist(entries(1..11, 1), state(1, 2), true).unwrap();
        log.persist(entries(4..6, 3), state(3, 2), true).unwrap();
        drop(log);
        let log = on_disk(dir.path(), 2);
        assert_eq!(log.last_index().unwrap(), 5);
        let terms: Vec<_> = all(&log).iter().map(|entry| entry.term).collect();
        assert_eq!(terms, [1, 1, 1, 3, 3]);
    }
}

/// A log in memory that notes what it is asked to write: the last entry, the hard state, the truncation.
struct Noting(MemoryLog, Arc<Mutex<Vec<Asked>>>);
type Asked = (Option<u64>, Option<HardState>, Option<u64>);

impl LogEngine for Noting {
    fn recover(&mut self, region: u64) -> Result<Recovered, EngineError> {
        self.0.recover(region)
    }

    fn write(&mut self, writes: &[LogWrite<'_>]) -> Result<(), EngineError> {
        let [write] = writes else { panic!("there is one region: {writes:?}") };
        let last = write.entries.last().map(|entry| entry.index);
        self.1.lock().push((last, write.hard_state.cloned(), write.truncated.map(|place| place.index)));
        self.0.write(writes)
    }

    fn entries(&self, region: u64, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, EngineError> {
        self.0.entries(region, low, high, max_bytes)
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        self.0.sync()
    }
}

#[test]
fn a_commit_index_is_written_with_a_vote_only_and_a_truncation_with_the_next_write() {
    let asked = Arc::default();
    let mut log = open(Noting(MemoryLog::new(), Arc::clone(&asked)), 0).unwrap();
    let expect = |what: &[Asked]| assert_eq!(std::mem::take(&mut *asked.lock()), what);
    log.persist(entries(1..4, 1), state(1, 0), true).unwrap();
    expect(&[(Some(3), state(1, 0), None)]);
    log.persist(Vec::new(), state(1, 3), false).unwrap();
    log.persist(entries(4..5, 1), state(1, 3), true).unwrap();
    expect(&[(Some(4), None, None)]);
    log.compact(1).unwrap();
    log.compact(2).unwrap();
    expect(&[]);
    log.persist(entries(5..6, 1), None, true).unwrap();
    log.persist(entries(6..7, 1), None, true).unwrap();
    expect(&[(Some(5), None, Some(2)), (Some(6), None, None)]);
    let vote = Some(HardState { term: 2, vote: 7, commit: 4 });
    log.persist(Vec::new(), vote.clone(), true).unwrap();
    expect(&[(None, vote, None)]);
}

#[test]
fn a_log_is_applied_behind_what_was_synced_and_never_from_before_its_beginning() {
    let memory = MemoryLog::new();
    let mut log = open(memory.clone(), 0).unwrap();
    log.persist(entries(1..6, 1), state(1, 0), true).unwrap();
    log.persist(entries(6..10, 2), state(2, 0), true).unwrap();
    log.compact(3).unwrap();
    log.persist(entries(10..11, 2), None, true).unwrap();
    for (synced, from) in [(0, (3, 1)), (3, (3, 1)), (5, (5, 1)), (7, (7, 2))] {
        let mut log =
            LogStorage::open(Box::new(memory.clone()) as Box<dyn LogEngine>, ConfState::default(), 9)
                .unwrap();
        assert_eq!(log.apply_behind(synced), Position { index: from.0, term: from.1 });
        assert_eq!(log.initial_state().unwrap().hard_state.commit, from.0);
    }
}

#[test]
fn a_fault_is_the_last_write() {
    for (fault, kept) in [(Fault::Write, 3), (Fault::Sync, 4)] {
        let memory = MemoryLog::new();
        let mut log = open(memory.clone(), 0).unwrap();
        log.persist(entries(1..4, 1), state(1, 0), true).unwrap();
        memory.fail_next(fault);
        let first = log.persist(entries(4..5, 1), None, true).unwrap_err();
        assert_eq!(log.fault(), Some(&first));
        for later in [
            log.persist(entries(4..5, 1), None, true),
            log.persist(Vec::new(), state(1, 1), false),
            log.compact(1),
        ] {
            let said = later.unwrap_err().to_string();
            assert!(said.contains("takes no writes") && said.contains(&first.to_string()), "{said}");
        }
        assert_eq!(all(&log).len(), 3, "what failed is not shown to raft");
        assert_eq!(open(memory.clone(), 0).unwrap().last_index, kept);
    }
}

#[test]
fn a_failed_sync_at_opening_is_refused() {
    let memory = MemoryLog::new();
    memory.fail_next(Fault::Sync);
    assert!(matches!(open(memory, 0).err(), Some(RecoverError::Engine(_))));
}

#[test]
fn what_was_recovered_is_made_durable_before_it_is_handed_out() {
    let memory = MemoryLog::new();
    let mut log = open(memory.clone(), 0).unwrap();
    log.persist(entries(1..4, 1), state(1, 0), false).unwrap();
    // The process died, its writes did not; it comes back and may acknowledge what it finds. Then the power fails.
    assert_eq!(open(memory.clone(), 0).unwrap().last_index, 3);
    memory.lose_power();
    assert_eq!(open(memory, 0).unwrap().last_index, 3);
}

#[test]
fn appends_that_raft_never_asks_for_are_refused_and_poison() {
    let bad = [
        ("a gap", entries(6..7, 2)),
        ("committed entries", entries(2..3, 2)),
        ("a gap inside", vec![entry(5, 2, 0), entry(7, 2, 0)]),
        ("a falling term", entries(5..6, 1)),
        ("a falling term inside", vec![entry(5, 3, 0), entry(6, 2, 0)]),
    ];
    for (what, entries_) in bad {
        let mut log = open(MemoryLog::new(), 0).unwrap();
        log.persist(entries(1..5, 2), state(2, 2), true).unwrap();
        log.persist(entries_, state(3, 2), true).expect_err(what);
        assert!(log.fault().is_some(), "{what}");
    }
}

#[test]
fn a_log_that_contradicts_itself_or_the_data_is_refused() {
    let log = |entries: &[Entry], hard_state: Option<HardState>, truncated: Option<(u64, u64)>| {
        let mut memory = MemoryLog::new();
        let truncated = truncated.map(|(index, term)| Position { index, term });
        memory
            .write(&[LogWrite {
                entries,
                hard_state: hard_state.as_ref(),
                truncated,
                sync: true,
                ..LogWrite::default()
            }])
            .unwrap();
        memory
    };
    let four = entries(1..5, 2);
    let cases = [
        ("log ends at entry 4, but the data", log(&four, state(2, 0), None), 5),
        ("log ends at entry 4, but those up to 9", log(&four, state(2, 9), None), 0),
        ("entries up to 2 are gone", log(&four, state(2, 4), Some((2, 2))), 1),
        ("truncated up to entry 2 of term 0", log(&four, state(2, 4), Some((2, 0))), 2),
        (
            "entry 3 of term 2 is followed by one of term 1",
            log(&[&four[..3], &entries(4..5, 1)].concat(), state(2, 0), None),
            0,
        ),
        ("entry 2 of term 3 is followed by one of term 2", log(&four, state(3, 4), Some((2, 3))), 2),
        ("entry 4 is of term 2, but the replica is in term 1", log(&four, state(1, 0), None), 0),
        ("entry 3 is missing", log(&[&four[..2], &four[3..]].concat(), state(2, 0), None), 0),
        ("entry 1 is missing", log(&four[1..], state(2, 0), None), 0),
    ];
    for (words, log, applied) in cases {
        let error = open(log, applied).err().expect(words).to_string();
        assert!(error.contains(words), "{error}");
    }
    open(log(&four, state(2, 4), Some((2, 2))), 3).unwrap();
}

#[test]
fn each_answer_that_raft_knows_is_given() {
    let is = |result: raft::Result<()>, kind| assert_eq!(result.unwrap_err(), raft::Error::Store(kind));
    let mut log = open(MemoryLog::new(), 0).unwrap();
    assert_eq!((log.first_index().unwrap(), log.last_index().unwrap(), log.term(0).unwrap()), (1, 0, 0));
    log.persist(entries(1..10, 3), state(3, 5), true).unwrap();
    log.compact(4).unwrap();
    log.compact(2).unwrap();
    assert!(log.compact(10).is_err() && log.fault().is_none());
    assert_eq!((log.first_index().unwrap(), log.truncated_index(), log.last_index().unwrap()), (5, 4, 9));
    is(read(&log, 4, 6, 100).map(drop), StorageError::Compacted);
    is(read(&log, 5, 11, 100).map(drop), StorageError::Unavailable);
    is(log.term(3).map(drop), StorageError::Compacted);
    is(log.term(10).map(drop), StorageError::Unavailable);
    is(log.snapshot(0, 2).map(drop), StorageError::SnapshotTemporarilyUnavailable);
    assert_eq!(log.term(4).unwrap(), 3);
    assert_eq!(read(&log, 7, 7, 100).unwrap(), []);
    assert_eq!(read(&log, 5, 10, 0).unwrap(), entries(5..6, 3), "at least one entry, whatever the limit");
    let size = raft::util::entry_approximate_size(&entry(5, 3, 8)) as u64;
    assert_eq!(read(&log, 5, 10, 2 * size).unwrap(), entries(5..7, 3));
    assert_eq!(log.entries(5, 10, None, GetEntriesContext::empty(true)).unwrap(), entries(5..10, 3));
    assert_eq!(log.initial_state().unwrap().conf_state.voters, [1]);
}

#[test]
fn entries_older_than_the_memory_of_them_are_read_from_the_engine() {
    for on_disk in ON_DISK {
        let dir = tempfile::tempdir().unwrap();
        let mut log = on_disk(dir.path(), 0);
        for first in (1..6001).step_by(500) {
            log.persist(entries(first..first + 500, 1), state(1, first - 1), true).unwrap();
        }
        assert!(log.known.recent.entries(1, 2, 0).is_none());
        assert_eq!(all(&log), entries(1..6001, 1));
        assert_eq!(read(&log, 1800, 2500, u64::MAX).unwrap(), entries(1800..2500, 1));
        drop(log);
        assert_eq!(all(&on_disk(dir.path(), 0)), entries(1..6001, 1));
    }
}

/// Raft itself on the log, with the power lost after each round: what was committed stays, whatever of the commit index
/// and of the truncation was written.
#[test]
fn a_single_voter_recovers_after_a_power_loss_in_any_round() {
    for rounds in 0..12 {
        let memory = MemoryLog::new();
        let mut applied = Vec::new();
        run(&memory, &mut applied, rounds);
        memory.lose_power();
        let before = applied.clone();
        run(&memory, &mut applied, 1);
        assert_eq!(applied[..before.len()], before, "rounds {rounds}");
        let proposed: Vec<_> = applied.iter().filter(|entry| !entry.data.is_empty()).collect();
        assert_eq!(proposed.len(), rounds + 1);
    }
}

fn run(memory: &MemoryLog, applied: &mut Vec<Entry>, rounds: usize) {
    let index = applied.last().map_or(0, |entry| entry.index);
    let config = raft::Config { id: 1, applied: index, ..raft::Config::default() };
    let log = open(memory.clone(), index).unwrap();
    let mut node = RawNode::new(&config, log, &Logger::root(Discard, o!())).unwrap();
    node.campaign().unwrap();
    ready(&mut node, applied);
    for round in 0..rounds {
        node.propose(Vec::new(), vec![round as u8 + 1]).unwrap();
        ready(&mut node, applied);
        if round % 4 == 3 {
            let applied = node.raft.raft_log.applied;
            node.mut_store().compact(applied).unwrap();
        }
    }
}

fn ready(node: &mut RawNode<LogStorage>, applied: &mut Vec<Entry>) {
    while node.has_ready() {
        let mut ready = node.ready();
        applied.extend(ready.take_committed_entries());
        let (entries, hard_state) = (ready.take_entries(), ready.hs().cloned());
        node.mut_store().persist(entries, hard_state, ready.must_sync()).unwrap();
        applied.extend(node.advance_append(ready).take_committed_entries());
        node.advance_apply();
    }
}

#[test]
fn that_a_change_of_members_is_committed_is_synced_at_once() {
    let (asked, memory) = (Arc::default(), MemoryLog::new());
    let mut log = open(Noting(memory.clone(), Arc::clone(&asked)), 0).unwrap();
    let expect = |what: &[Asked]| assert_eq!(std::mem::take(&mut *asked.lock()), what);
    let change = |index| {
        let mut entry = entry(index, 1, 20);
        entry.set_entry_type(EntryType::EntryConfChangeV2);
        vec![entry]
    };
    log.persist(entries(1..3, 1), state(1, 0), true).unwrap();
    log.persist(change(3), state(1, 1), true).unwrap();
    log.persist(entries(4..5, 1), state(1, 2), true).unwrap();
    expect(&[(Some(2), state(1, 0), None), (Some(3), state(1, 1), None), (Some(4), None, None)]);
    assert!(log.stage(Vec::new(), state(1, 3), false).unwrap(), "it is synced");
    log.write_staged().unwrap();
    assert!(!log.stage(Vec::new(), state(1, 4), false).unwrap(), "once");
    log.write_staged().unwrap();
    expect(&[(None, state(1, 3), None)]);
    assert_eq!(memory.unsynced(), 0);
    // A start finds a change that was not known to be committed, and one that is overwritten is none any more.
    log.persist(change(5), state(1, 4), true).unwrap();
    let mut log = open(Noting(memory, Arc::clone(&asked)), 0).unwrap();
    asked.lock().clear();
    log.persist(entries(6..7, 1), state(1, 5), true).unwrap();
    expect(&[(Some(6), state(1, 5), None)]);
    log.persist(change(7), state(1, 5), true).unwrap();
    log.persist(entries(7..9, 2), state(2, 5), true).unwrap();
    asked.lock().clear();
    log.persist(Vec::new(), state(2, 8), false).unwrap();
    expect(&[]);
}

#[test]
fn a_change_of_members_is_kept_with_the_commit_index_and_other_entries_are_not() {
    let commit_after = |kind: EntryType| {
        let log = MemoryLog::new();
        let mut storage =
            LogStorage::open(Box::new(log.clone()) as Box<dyn LogEngine>, ConfState::default(), 0).unwrap();
        storage.persist(entries(1..3, 1), state(1, 0), true).unwrap();
        let mut last = entry(3, 1, 20);
        last.set_entry_type(kind);
        storage.persist(vec![last], state(1, 2), true).unwrap();
        drop(storage);
        LogStorage::open(Box::new(log) as Box<dyn LogEngine>, ConfState::default(), 0)
            .unwrap()
            .hard_state()
            .commit
    };
    assert_eq!(commit_after(EntryType::EntryConfChangeV2), 2);
    assert_eq!(commit_after(EntryType::EntryNormal), 0);
}
