//! A crash at any moment of a snapshot's arrival and installation leaves a replica as it was before or as it is after.

use std::{
    iter::{from_fn, zip},
    sync::Mutex,
};

use proptest::{array, collection::vec, prelude::*};
use raft::eraftpb::{Entry, HardState};

use super::*;
use crate::{
    engine::{Cf, EngineError, Modify, Snapshot, WriteBatch, memory::MemoryEngine},
    raftstore::{
        log_storage::{LogEngine, LogWrite, MemoryLog, Recovered as RecoveredLog},
        snapshot::{ChunkReader, SHARED, SHARED_NUMBERS, Sending, SnapshotChunk},
        staging::Manifest,
    },
};

/// What reached the disk, in order.
#[derive(Clone, Debug)]
enum Event {
    Data(Vec<Modify>),
    DataSync,
    /// The log begins anew, in one synced write.
    LogRestart(HardState, Position),
}

type Events = Arc<Mutex<Vec<Event>>>;

/// Data that notes what is done to it.
struct Journal(MemoryEngine, Events);

impl Engine for Journal {
    fn write(&self, batch: &WriteBatch) -> Result<(), EngineError> {
        self.1.lock().unwrap().push(Event::Data(batch.modifies().to_vec()));
        self.0.write(batch)
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.1.lock().unwrap().push(Event::DataSync);
        Ok(())
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        self.0.snapshot()
    }
}

/// A log that notes when it begins anew.
struct NotingLog(MemoryLog, Events);

impl LogEngine for NotingLog {
    fn recover(&mut self, region: u64) -> Result<RecoveredLog, EngineError> {
        self.0.recover(region)
    }

    fn write(&mut self, writes: &[LogWrite<'_>]) -> Result<(), EngineError> {
        let [write] = writes else { panic!("there is one region: {writes:?}") };
        assert!(write.restart && write.sync && write.entries.is_empty(), "{write:?}");
        let event = Event::LogRestart(write.hard_state.unwrap().clone(), write.truncated.unwrap());
        self.1.lock().unwrap().push(event);
        self.0.write(writes)
    }

    fn entries(&self, region: u64, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, EngineError> {
        self.0.entries(region, low, high, max_bytes)
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        self.0.sync()
    }
}

const BEFORE: ApplyState = ApplyState { index: 3, term: 1 };
const AFTER: Position = Position { index: 10, term: 2 };

/// Data as a replica has it that stands here; what is said of `old` keys is gone later.
fn data(state: ApplyState) -> MemoryEngine {
    let engine = MemoryEngine::default();
    let mut batch = WriteBatch::default();
    for cf in SHARED {
        let kept = if state == BEFORE { "old" } else { "new" };
        for n in 0..5 {
            batch.push(Modify::Put(cf, format!("{kept}-{n}").into(), vec![n; 30]));
            batch.push(Modify::Put(cf, format!("both-{n}").into(), state.index.to_be_bytes().to_vec()));
        }
    }
    if state != BEFORE {
        batch.push(SHARED_NUMBERS[0].put(77));
    }
    batch.push(SHARED_NUMBERS[1].put(state.index));
    let conf_ver = if state == BEFORE { 3 } else { 7 };
    let membership = Membership { conf_ver, ..Membership::first(voters(&[1, 2, 3])) };
    crate::apply::state::save_membership(&membership, &mut batch);
    state.save(None, &mut batch);
    engine.write(&batch).unwrap();
    engine
}

/// Everything that belongs to the group.
fn contents(engine: &dyn Engine) -> Vec<(Cf, Vec<u8>, Vec<u8>)> {
    let view = engine.snapshot();
    let mut found = Vec::new();
    for cf in SHARED {
        let mut cursor = view.cursor(cf, b"", b"");
        cursor.seek_to_first().unwrap();
        while let Some((key, value)) = cursor.entry() {
            found.push((cf, key.to_vec(), value.to_vec()));
            cursor.next().unwrap();
        }
    }
    let numbers = SHARED_NUMBERS.map(|number| (number.key(), view.get(Cf::Meta, number.key()).unwrap()));
    found.extend(numbers.into_iter().filter_map(|(key, value)| Some((Cf::Meta, key.to_vec(), value?))));
    found
}

/// Keys of chunks and of the manifest.
fn staged(engine: &dyn Engine) -> usize {
    let view = engine.snapshot();
    let mut cursor = view.cursor(Cf::Meta, b"snapshot", b"snapshot0");
    cursor.seek_to_first().unwrap();
    let mut count = 0;
    while cursor.entry().is_some() {
        count += 1;
        cursor.next().unwrap();
    }
    count
}

/// Terms of the entries from 1 on that a replica's log holds when a snapshot arrives.
const LOGS: [&[u64]; 4] = [&[1, 1, 1], &[1; 6], &[1; 14], &[1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]];

fn log(terms: &[u64]) -> MemoryLog {
    let mut log = MemoryLog::new();
    let entries: Vec<_> =
        (1..).zip(terms).map(|(index, term)| Entry { index, term: *term, ..Entry::default() }).collect();
    let hard_state = HardState { term: *terms.last().unwrap(), vote: 2, commit: 3 };
    log.write(&[LogWrite {
        entries: &entries,
        hard_state: Some(&hard_state),
        sync: true,
        ..LogWrite::default()
    }])
    .unwrap();
    log
}

/// Starts a replica. What it does meanwhile is noted.
fn reopen(engine: &MemoryEngine, log: MemoryLog) -> Vec<Event> {
    let events = Events::default();
    let config = Config { voters: vec![1, 2, 3], ..Config::new("in-memory") };
    let parts = Parts {
        dir: "in-memory".into(),
        engine: Arc::new(Journal(engine.clone(), Arc::clone(&events))),
        log: Box::new(NotingLog(log, Arc::clone(&events))),
    };
    let recovered = recover(&config, parts, Some(Arc::new(Nobody)), &Observer::default()).unwrap();
    let applied = recovered.regions[0].data.applied.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(applied, ApplyState::load(&*engine.snapshot()).unwrap().index);
    events.lock().unwrap().clone()
}

/// What is on the disk after so many of the events, where writes that were not synced are lost: the last ones, or one
/// of them.
fn crashes(
    engine: &dyn Fn() -> MemoryEngine,
    terms: &[u64],
    events: &[Event],
    mut check: impl FnMut(MemoryEngine, MemoryLog),
) {
    for end in 0..=events.len() {
        let synced = events[..end].iter().rposition(|event| matches!(event, Event::DataSync)).unwrap_or(0);
        // All of them, the first ones, or all but one.
        let losses = (synced..=end).map(|from| from..end).chain((synced..end).map(|one| one..one + 1));
        for lost in losses {
            let (engine, mut log) = (engine(), log(terms));
            for (place, event) in events[..end].iter().enumerate() {
                match event {
                    Event::Data(changes) if !lost.contains(&place) => {
                        let mut batch = WriteBatch::default();
                        changes.iter().for_each(|change| batch.push(change.clone()));
                        engine.write(&batch).unwrap();
                    }
                    Event::LogRestart(hard_state, place) => {
                        let (hard_state, truncated) = (Some(hard_state), Some(*place));
                        let write = LogWrite {
                            hard_state,
                            truncated,
                            restart: true,
                            sync: true,
                            ..LogWrite::default()
                        };
                        log.write(&[write]).unwrap();
                    }
                    _ => {}
                }
            }
            check(engine, log);
        }
    }
}

#[test]
fn a_crash_at_any_moment_of_an_install_leaves_a_replica_before_it_or_after_it() {
    let source = data(ApplyState { index: AFTER.index, term: AFTER.term });
    let mut reader = ChunkReader::new(source.snapshot(), 100);
    let chunks: Vec<_> = std::iter::from_fn(|| reader.next().unwrap()).collect();
    assert!(chunks.len() > 5, "{}", chunks.len());
    let manifest = Manifest { position: AFTER, chunks: chunks.len() as u64, members: voters(&[1, 2, 3]) };
    let (before, after) = (contents(&data(BEFORE)), contents(&source));
    let hard_state = HardState { term: 3, vote: 0, commit: AFTER.index };

    for terms in LOGS {
        let old = || {
            let engine = data(BEFORE);
            let mut batch = WriteBatch::default();
            batch.push(Number::Replica.put(1));
            batch.push(Number::Synced.put(BEFORE.index));
            engine.write(&batch).unwrap();
            engine
        };
        let events = Events::default();
        let staging = Staging::new(Arc::new(Journal(old(), Arc::clone(&events))));
        for (number, changes) in chunks.clone() {
            staging
                .stage(&SnapshotChunk {
                    region: 1,
                    from: 2,
                    to: 1,
                    position: AFTER,
                    sending: Sending::default(),
                    number,
                    changes,
                })
                .unwrap();
        }
        assert!(staging.complete(Sending::default(), &manifest).unwrap());
        let complete = events.lock().unwrap().len();
        if terms.get(9) != Some(&AFTER.term) {
            // Raft wants no snapshot of entries that its log holds.
            events.lock().unwrap().push(Event::LogRestart(hard_state.clone(), AFTER));
            staging.install(&manifest).unwrap();
            staging.finish(&manifest).unwrap();
        }
        let events = events.lock().unwrap().clone();

        let mut seen = [0, 0];
        let mut check = |engine: MemoryEngine, log: MemoryLog| {
            reopen(&engine, log.clone());
            let state = ApplyState::load(&*engine.snapshot()).unwrap();
            let is_after = state != BEFORE;
            assert!(contents(&engine) == if is_after { after.clone() } else { before.clone() }, "{terms:?}");
            assert_eq!(staged(&engine), 0);
            assert!(reopen(&engine, log).iter().all(|event| !matches!(event, Event::LogRestart(..))));
            seen[usize::from(is_after)] += 1;
        };
        crashes(&old, terms, &events, &mut check);

        // The start that finishes the install can crash as well.
        let arrived = || {
            let engine = old();
            for event in &events[..complete] {
                let Event::Data(changes) = event else { continue };
                let mut batch = WriteBatch::default();
                changes.iter().for_each(|change| batch.push(change.clone()));
                engine.write(&batch).unwrap();
            }
            engine
        };
        let finishing = reopen(&arrived(), log(terms));
        let restarts = finishing.iter().filter(|event| matches!(event, Event::LogRestart(..))).count();
        assert_eq!(restarts, usize::from(terms.get(9) != Some(&AFTER.term)));
        crashes(&arrived, terms, &finishing, &mut check);
        assert!(seen.iter().all(|count| *count > 5), "{seen:?}");
    }
}

#[test]
fn a_snapshot_of_which_a_chunk_is_missing_is_not_installed_and_the_next_one_replaces_it() {
    let engine = Arc::new(data(BEFORE));
    let staging = Staging::new(Arc::clone(&engine) as _);
    let chunk = |sending, number, key: &str| SnapshotChunk {
        region: 1,
        from: 2,
        to: 1,
        position: AFTER,
        sending,
        number,
        changes: crate::engine::modify::encode(&[Modify::Put(Cf::Raw, key.into(), b"v".to_vec())]),
    };
    let manifest = Manifest { position: AFTER, chunks: 3, members: voters(&[1, 2, 3]) };
    let [first, second, third] = [(1, 7), (2, 1), (2, 2)].map(|(term, number)| Sending { term, number });
    staging.stage(&chunk(first, 0, "lost")).unwrap();
    staging.stage(&chunk(first, 2, "lost")).unwrap();
    assert!(!staging.complete(first, &manifest).unwrap());
    staging.stage(&chunk(second, 0, "a")).unwrap();
    staging.stage(&chunk(second, 1, "b")).unwrap();
    assert!(!staging.complete(second, &manifest).unwrap(), "the third one is of the snapshot before");
    assert!(staging.stage(&chunk(first, 0, "late")).is_err());
    staging.stage(&chunk(second, 2, "c")).unwrap();
    assert!(!staging.complete(first, &manifest).unwrap());
    assert!(!staging.complete(third, &manifest).unwrap(), "its chunks are all lost");
    let elsewhere = Position { index: AFTER.index + 1, ..AFTER };
    assert!(staging.stage(&SnapshotChunk { position: elsewhere, ..chunk(second, 2, "c") }).is_err());
    assert!(!staging.complete(second, &Manifest { position: elsewhere, ..manifest.clone() }).unwrap());
    assert!(staging.complete(second, &manifest).unwrap());
    assert!(!staging.complete(second, &manifest).unwrap(), "one at a time");
    assert!(staging.stage(&chunk(third, 0, "late")).is_err());
    staging.install(&manifest).unwrap();
    staging.finish(&manifest).unwrap();
    let keys: Vec<_> = contents(&*engine).into_iter().map(|(_, key, _)| key).collect();
    assert_eq!(keys, [&b"a"[..], b"b", b"c", b"conf_ver"]);
    assert_eq!(staged(&*engine), 0);
}

proptest! {
    #[test]
    fn chunks_of_several_sendings_make_a_snapshot_of_one_however_they_arrive(
        steps in vec((0..3usize, 0..10usize), 0..200), extra in array::uniform3(vec(0..20u8, 0..6)), cuts in array::uniform3(150..600usize),
    ) {
        // All three are of one position: each holds some of what comes behind it, and is cut in its own way.
        let sendings: Vec<_> = zip(extra, cuts).zip(1..).map(|((extra, cut), number)| {
            let donor = data(ApplyState { index: AFTER.index, term: AFTER.term });
            let mut batch = WriteBatch::default();
            let keys = (0..20).step_by(2).chain(extra);
            keys.for_each(|key| batch.push(Modify::Put(Cf::Raw, vec![key], b"value".to_vec())));
            donor.write(&batch).unwrap();
            let mut reader = ChunkReader::new(donor.snapshot(), cut);
            let chunks: Vec<_> = from_fn(|| reader.next().unwrap()).collect();
            (Sending { term: 3, number }, chunks, contents(&donor))
        }).collect();
        let engine = Arc::new(data(BEFORE));
        let staging = Staging::new(Arc::clone(&engine) as _);
        // Each sends its chunks in turn, some of which are lost, come twice or late, and then says that it has.
        for (which, chunk) in steps {
            let (sending, chunks, holds) = &sendings[which];
            if let Some((number, changes)) = chunks.get(chunk).cloned() {
                let _ = staging.stage(&SnapshotChunk { region: 1, from: 2, to: 1, position: AFTER, sending: *sending, number, changes });
            }
            let manifest = Manifest { position: AFTER, chunks: chunks.len() as u64, members: voters(&[1, 2, 3]) };
            if staging.complete(*sending, &manifest).unwrap() {
                staging.install(&manifest).unwrap();
                staging.finish(&manifest).unwrap();
                prop_assert_eq!(&contents(&*engine), holds);
            }
        }
    }
}

#[test]
fn a_change_of_members_that_was_applied_stays_committed_while_the_log_is_applied_again() {
    // The start before this one applied the log again, from behind the change, and died.
    let engine = data(BEFORE);
    let mut batch = WriteBatch::default();
    let membership = Membership { members: voters(&[1, 2]), index: 5, conf_ver: 2 };
    crate::apply::state::save_membership(&membership, &mut batch);
    engine.write(&batch).unwrap();
    let config = Config { voters: vec![1, 2, 3], ..Config::new("in-memory") };
    let parts = Parts { dir: "in-memory".into(), engine: Arc::new(engine), log: Box::new(log(&[1; 6])) };
    let recovered = recover(&config, parts, Some(Arc::new(Nobody)), &Observer::default()).unwrap();
    // A leader commits what is known to be, and can then give a snapshot, which must not be behind its own members.
    assert_eq!(recovered.regions[0].peer.known_to_be_committed(), 5);
}
