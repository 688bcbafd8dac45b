//! How many allocations a raw put makes in the pipeline, stage by stage: exact counts, which a change that adds one
//! has to raise here.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use benches::{
    allocations::{Allocations, Counting, OTHERS},
    in_memory,
};
use storage_pipeline::{CompletionMode, Storage};

#[global_allocator]
static COUNTING: Counting = Counting;

/// One put, until nothing of it is in flight any more.
fn put(storage: &Storage) -> BTreeMap<&'static str, u64> {
    let before = Allocations::now();
    assert!(storage.raw_put(b"key", &[7; 150]).is_applied());
    let end = Instant::now() + Duration::from_secs(60);
    // What apply reports to the raftstore may lie there until the next put: that one pays for it.
    while storage.in_flight().commands > 0 {
        assert!(Instant::now() < end, "the put is still in flight");
    }
    // The thread that released the latches may still be dropping what it held; it allocates nothing for that.
    Allocations::now().since(&before)
}

/// What most puts make. One in many also grows a queue or a table, whose cost is shared by all of them.
fn usual(mode: CompletionMode) -> BTreeMap<&'static str, u64> {
    let storage = in_memory::open(mode).unwrap();
    let mut seen: BTreeMap<_, u32> = BTreeMap::new();
    for _ in 0..100 {
        *seen.entry(put(&storage)).or_default() += 1;
    }
    let (usual, times) = seen.iter().max_by_key(|(_, times)| **times).unwrap();
    assert!(*times > 50, "{mode}: no count is the usual one: {seen:?}");
    usual.clone()
}

/// The usual counts of each group of threads: caller, scheduler, worker, raftstore, apply. Of the caller's, two are the
/// copies of key and value that the blocking form makes; of the raftstore's, four are raft's own copies of the entry
/// and the lists that it hands them out in.
const WITH_A_SCHEDULER: [u64; 5] = [6, 2, 0, 7, 3];
const WITHOUT: [u64; 5] = [8, 0, 0, 7, 3];

#[test]
fn a_raw_put_makes_as_many_allocations_as_it_did() {
    for mode in CompletionMode::ALL {
        let usual = usual(mode);
        let counts = [OTHERS, "scheduler", "worker", "raftstore", "apply"].map(|group| usual[group]);
        let expected = match mode {
            CompletionMode::SchedulerThread | CompletionMode::ApplyNotify => WITH_A_SCHEDULER,
            _ => WITHOUT,
        };
        assert_eq!(counts, expected, "{mode}");
        // What this project is to stay below, on the pipeline's own threads.
        assert!(counts[1..].iter().sum::<u64>() <= 12, "{mode}");
    }
}
