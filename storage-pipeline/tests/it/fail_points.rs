//! The fail points that `docs/testing.md` lists: they are all there are, and each acts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use fail::FailScenario;
use storage_pipeline::{
    Cause, Config, Error, Outcome, ReadPolicy, Storage,
    engine::memory::MemoryEngine,
    fail_points::FailPoints,
    observe::{FailPoint, Moment},
    raftstore::log_storage::MemoryLog,
    storage::{Cluster, Parts},
};

use crate::support::{PATIENCE, checked, config, wait_for};

const PREFIX: &str = "storage_pipeline::";

fn names() -> BTreeSet<String> {
    [Moment::NAMES, FailPoint::NAMES].concat().iter().map(|name| format!("{PREFIX}{name}")).collect()
}

#[test]
fn the_documented_fail_points_are_all_there_are() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/testing.md");
    let page = std::fs::read_to_string(page).unwrap();
    let listed = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let listed: BTreeSet<_> =
        listed.map(|(name, _)| name.to_owned()).filter(|name| name.starts_with(PREFIX)).collect();
    assert_eq!(listed, names());
    assert_eq!(names().len(), Moment::NAMES.len() + FailPoint::NAMES.len(), "no name is used twice");
}

/// Opens a group of stores in memory. What happens in it passes through the fail points.
fn group(replicas: usize) -> Cluster {
    let mut config = config(Default::default(), "in-memory".as_ref());
    config.log_gc_entries = 10;
    config.log_gc_size_limit = 1;
    let kept = Mutex::new(BTreeMap::<u64, (MemoryEngine, MemoryLog)>::new());
    let parts = move |id| {
        let (engine, log) = kept.lock().unwrap().entry(id).or_default().clone();
        Ok(Parts { dir: format!("replica-{id}").into(), engine: Arc::new(engine), log: Box::new(log) })
    };
    Cluster::open_with(config, replicas, parts, |_| Some(Arc::new(FailPoints::default()))).unwrap()
}

/// Writes until something holds.
fn write_until(cluster: &Cluster, what: &str, holds: impl Fn() -> bool) {
    wait_for(what, || {
        if let Some(leader) = cluster.leader() {
            let _ = leader.execute(checked("checked"));
            let _ = leader.raw_put(b"k", b"v");
        }
        holds()
    });
}

#[test]
fn every_moment_acts_as_a_fail_point() {
    let scenario = FailScenario::setup();
    let reached: BTreeMap<_, _> =
        Moment::NAMES.iter().map(|name| (*name, Arc::new(AtomicUsize::new(0)))).collect();
    for (name, count) in &reached {
        let count = Arc::clone(count);
        let note = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        fail::cfg_callback(format!("{PREFIX}{name}"), note).unwrap();
    }
    let times = |name: &str| reached[name].load(Ordering::Relaxed);
    let cluster = group(3);
    let leader = cluster.wait_for_leader(PATIENCE).unwrap().status().replica;
    let follower = leader % 3 + 1;
    // A follower is cut off until the log has forgotten what it needs.
    cluster.network().isolate(follower);
    let before = times("Truncating");
    write_until(&cluster, "truncations", || times("Truncating") > before + 2);
    cluster.network().heal();
    write_until(&cluster, "a snapshot", || times("SnapshotInstalling") > 0);
    drop(cluster);
    for (name, count) in &reached {
        assert!(count.load(Ordering::Relaxed) > 0, "{name} was never reached");
    }
    scenario.teardown();
}

fn open(dir: &Path) -> Storage {
    let mut config: Config = config(Default::default(), dir);
    config.read_policy = ReadPolicy::ReadIndex;
    let parts = Parts::on_disk(&config.dir).unwrap();
    Storage::open_with(config, parts, Some(Arc::new(FailPoints::default()))).unwrap()
}

#[test]
fn every_place_fails_once_when_it_is_told_to() {
    let scenario = FailScenario::setup();
    let busy = || Outcome::NotExecuted(Error::SchedTooBusy);
    let no_leader = || Outcome::NotExecuted(Error::NotLeader { leader: None });
    for point in FailPoint::NAMES {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path());
        assert!(storage.execute(checked("k")).is_applied());
        fail::cfg(format!("{PREFIX}{point}"), "1*return").unwrap();
        let outcome = storage.execute(checked("k"));
        match *point {
            "SnapshotRefused" | "ProposalRefused" => assert_eq!(outcome, busy(), "{point}"),
            "RaftDropsProposal" | "RaftDropsRead" => assert_eq!(outcome, no_leader(), "{point}"),
            _ => {
                assert!(
                    matches!(outcome, Outcome::Indeterminate(Cause::Poisoned(_))),
                    "{point}: {outcome:?}"
                );
                assert!(storage.fault().is_some_and(|fault| fault.contains("injected failure")));
                drop(storage);
                let again = open(dir.path());
                assert!(again.execute(checked("k")).is_applied(), "{point}");
                continue;
            }
        }
        assert!(storage.execute(checked("k")).is_applied(), "{point} fails once");
        assert_eq!(storage.fault(), None);
    }
    scenario.teardown();
}

#[test]
fn a_thread_waits_at_a_fail_point_until_it_is_let_go() {
    let scenario = FailScenario::setup();
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path());
    fail::cfg(format!("{PREFIX}Applying"), "pause").unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let tell = Arc::clone(&told);
    storage.submit(checked("k"), move |outcome| {
        assert!(outcome.is_applied());
        tell.store(1, Ordering::Release);
    });
    thread::sleep(Duration::from_millis(50));
    assert_eq!(told.load(Ordering::Acquire), 0);
    fail::remove(format!("{PREFIX}Applying"));
    wait_for("the answer", || told.load(Ordering::Acquire) == 1);
    scenario.teardown();
}
