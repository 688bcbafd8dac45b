//! Power loss: the writes and syncs of a run are recorded, and the directory is rebuilt as a loss of power at many of
//! its moments may have left it. Everything that was acknowledged before must be there. The last test shows that this
//! finds something: without any one sort of sync, something is lost.

mod journal;
mod disk;
mod loss;
mod run;
mod model_tests;
mod holes;

use std::{
    collections::{BTreeMap, HashMap},
    env,
    path::Path,
    process::Command,
};

use storage_pipeline::{CompletionMode, RaftLog};
use tempfile::TempDir;

use crate::support::in_every_mode;
use journal::Event;
use loss::{Dice, Loss, read_tree, survivors};
use run::{Habits, Life, Recording};

/// Among them a life behind a kill, which goes on from what no sync has reached.
const LIVES: [Life; 4] = [
    Life::Closes { numbers: 40 },
    Life::IsKilled { events: 900 },
    Life::Closes { numbers: 40 },
    Life::IsKilled { events: 700 },
];

/// So that the log is truncated many times.
const HABITS: Habits =
    Habits { log_gc_entries: 30, value_bytes: 100, raft_log: RaftLog::RocksDb, split_keys: &[] };

/// Sorts of syncs without which nothing is lost: RocksDB reads its options only where it is asked to.
const UNNEEDED: [&str; 2] = ["above/store/data/OPTIONS", "above/store/log/OPTIONS"];

fn recording(mode: CompletionMode, dir: &Path) -> Recording {
    Recording::of(dir, mode, HABITS, &LIVES)
}

fn always(_: &Path) -> bool {
    true
}

/// A directory for what a loss left, in memory where there is enough: what is opened there need not last.
fn scratch() -> TempDir {
    const ENOUGH_KIB: u64 = 1 << 20;
    let free = Command::new("df").args(["--output=avail", "-k", "/dev/shm"]).output();
    let free = free.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let free = free.and_then(|text| text.lines().last()?.trim().parse::<u64>().ok());
    match free {
        Some(free) if free > ENOUGH_KIB => tempfile::tempdir_in("/dev/shm").unwrap(),
        _ => tempfile::tempdir().unwrap(),
    }
}

/// A loss of some kind.
fn some_loss(dice: &mut Dice) -> Loss {
    let seed = dice.below(1 << 40) as u64;
    match dice.below(8) {
        0 => Loss::Nothing,
        1 | 2 => Loss::Everything,
        3 => Loss::Contents,
        4 | 5 => Loss::Ordered(seed),
        _ => Loss::Random(seed),
    }
}

/// How many moments of a run are tried; more in the long stage.
fn points(default: usize) -> usize {
    env::var("POWER_LOSS_POINTS").map_or(default, |points| points.parse().expect("a number of points"))
}

#[test]
fn the_journal_tells_everything_that_was_done_to_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(CompletionMode::ApplyNotify, dir.path());
    let events = recording.events();
    let (disk, acknowledged) = recording.at(&events, &always);
    assert!(acknowledged.transactions.len() > 80, "{acknowledged:?}");
    let (told, found) = (survivors(&disk, Loss::Nothing), read_tree(&recording.root).unwrap());
    assert_eq!(told.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (path, bytes) in &told {
        assert!(found[path] == *bytes, "{} differs", path.display());
    }
}

/// Whatever keeps the log. That one of the default kind is tried in every mode.
#[test]
#[cfg(feature = "raft-engine")]
fn a_power_loss_loses_nothing_acknowledged_where_a_raft_engine_keeps_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let habits = Habits { raft_log: RaftLog::RaftEngine, ..HABITS };
    let recording = Recording::of(dir.path(), CompletionMode::default(), habits, &LIVES);
    let events = recording.events();
    let (disk, acknowledged) = recording.at(&events, &always);
    assert!(acknowledged.transactions.len() > 80, "{acknowledged:?}");
    assert!(
        survivors(&disk, Loss::Nothing) == read_tree(&recording.root).unwrap(),
        "the journal is incomplete"
    );
    let mut dice = Dice::new(3);
    let mut try_one = |reaches: &dyn Fn(&Path) -> bool| {
        let (moment, loss) = (dice.below(events.len() + 1), some_loss(&mut dice));
        let lost = recording.check(&events[..moment], reaches, loss, scratch().path());
        lost.map_err(|lost| format!("after {moment} of {} events, {loss:?}: {lost}", events.len()))
    };
    for _ in 0..points(8) {
        try_one(&always).unwrap();
    }
    let no_log = |path: &Path| path.extension().is_none_or(|extension| extension != "raftlog");
    let found = (0..points(100)).find_map(|_| try_one(&no_log).err());
    eprintln!("without the syncs of the log: {}", found.expect("a loss"));
}

/// The halves of each transaction are in two regions, and the raw keys in a third one.
#[test]
fn a_power_loss_loses_nothing_acknowledged_in_any_of_several_regions_whatever_keeps_their_log() {
    for raft_log in RaftLog::ALL {
        let dir = tempfile::tempdir().unwrap();
        let habits = Habits { raft_log: *raft_log, split_keys: &["b", "raw-"], ..HABITS };
        let recording = Recording::of(dir.path(), CompletionMode::default(), habits, &LIVES);
        let events = recording.events();
        let (_, acknowledged) = recording.at(&events, &always);
        assert!(acknowledged.transactions.len() > 80, "{raft_log}: {acknowledged:?}");
        let mut dice = Dice::new(11);
        for _ in 0..points(8) {
            let (moment, loss) = (dice.below(events.len() + 1), some_loss(&mut dice));
            if let Err(lost) = recording.check(&events[..moment], &always, loss, scratch().path()) {
                panic!("{raft_log}, after {moment} of {} events, {loss:?}: {lost}", events.len());
            }
        }
    }
}

#[test]
fn a_power_loss_at_any_moment_loses_nothing_acknowledged_and_leaves_no_transaction_half_done() {
    in_every_mode(|mode, dir| {
        let recording = recording(mode, dir);
        let events = recording.events();
        let mut dice = Dice::new(mode as u64);
        for _ in 0..points(4) {
            let (moment, loss) = (dice.below(events.len() + 1), some_loss(&mut dice));
            if let Err(lost) = recording.check(&events[..moment], &always, loss, scratch().path()) {
                panic!("after {moment} of {} events, {loss:?}: {lost}", events.len());
            }
        }
    });
}

/// What a sync is of: the path, with the kind of file for its name.
fn sort(path: &Path) -> String {
    let mut parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
    if let [_, _, _, name] = parts.as_mut_slice() {
        *name = match *name {
            name if name.starts_with("OPTIONS") => "OPTIONS",
            name if name.starts_with("MANIFEST") => "MANIFEST",
            // Under its first name.
            name if name.ends_with(".dbtmp") => "CURRENT",
            name => name.rsplit_once('.').map_or(name, |(_, extension)| extension),
        };
    }
    if parts.is_empty() { "the directory above".to_owned() } else { parts.join("/") }
}

/// How often each sort of sync was asked for.
fn syncs(recording: &Recording, events: &[Event<'_>]) -> BTreeMap<String, usize> {
    let (mut open, mut syncs) = (HashMap::new(), BTreeMap::new());
    for event in events {
        match event {
            Event::Open { fd, path, .. } => {
                open.insert(*fd, sort(path.strip_prefix(&recording.root).unwrap()));
            }
            Event::SyncBegin { fd, .. } => *syncs.entry(open[fd].clone()).or_default() += 1,
            _ => {}
        }
    }
    syncs
}

#[test]
fn without_any_one_sort_of_sync_a_power_loss_loses_something() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(CompletionMode::ApplyNotify, dir.path());
    let events = recording.events();
    let most_points = points(100);
    let mut never = Vec::new();
    for (omitted, times) in syncs(&recording, &events) {
        if UNNEEDED.contains(&omitted.as_str()) {
            continue;
        }
        let mut dice = Dice::new(7);
        let reaches = |path: &Path| sort(path) != omitted;
        let found = (1..=most_points).find_map(|point| {
            let (moment, loss) = (dice.below(events.len() + 1), some_loss(&mut dice));
            let lost = recording.check(&events[..moment], &reaches, loss, scratch().path()).err()?;
            Some(format!("point {point}: {lost}"))
        });
        eprintln!("{omitted}, {times} syncs: {}", found.as_deref().unwrap_or("nothing is lost"));
        if found.is_none() {
            never.push(omitted);
        }
    }
    assert!(never.is_empty(), "nothing is lost in {most_points} points without the syncs of {never:?}");
}
