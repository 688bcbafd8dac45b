use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Command {
    id: u64,
    hashes: Vec<u64>,
}

impl Waiter for Command {
    fn id(&self) -> u64 {
        self.id
    }
    fn hashes(&self) -> &[u64] {
        &self.hashes
    }
}

fn command(id: u64, hashes: &[u64]) -> Command {
    Command { id, hashes: hashes.to_vec() }
}

#[test]
fn first_come_first_served_per_key() {
    let latches = Latches::new(4);
    assert!(latches.acquire(command(1, &[7])).is_some());
    assert!(latches.acquire(command(2, &[7])).is_none());
    assert!(latches.acquire(command(3, &[7])).is_none());
    let mut ready = Vec::new();
    latches.release(1, &[7], &mut ready);
    assert_eq!(ready, [command(2, &[7])]);
    ready.clear();
    latches.release(2, &[7], &mut ready);
    assert_eq!(ready, [command(3, &[7])]);
    ready.clear();
    latches.release(3, &[7], &mut ready);
    assert!(ready.is_empty());
    assert_eq!(latches.counts(), (0, 0));
}

#[test]
fn keys_that_share_a_slot_do_not_wait_for_each_other() {
    let latches = Latches::new(1);
    assert!(latches.acquire(command(1, &[1])).is_some());
    assert!(latches.acquire(command(2, &[2])).is_some());
}

#[test]
fn a_waiter_goes_on_from_where_it_queued() {
    let latches = Latches::new(8);
    assert!(latches.acquire(command(1, &[1])).is_some());
    assert!(latches.acquire(command(2, &[3])).is_some());
    assert!(latches.acquire(command(3, &[1, 2, 3])).is_none());
    let mut ready = Vec::new();
    latches.release(1, &[1], &mut ready);
    assert!(ready.is_empty(), "it holds 1 and 2 now, and queues for 3");
    assert!(latches.acquire(command(4, &[2])).is_none());
    latches.release(2, &[3], &mut ready);
    assert_eq!(ready, [command(3, &[1, 2, 3])]);
}

#[test]
fn releasing_what_is_not_held_changes_nothing() {
    let latches = Latches::new(8);
    assert!(latches.acquire(command(1, &[1])).is_some());
    assert!(latches.acquire(command(2, &[1])).is_none());
    let mut ready = Vec::new();
    latches.release(9, &[1, 2], &mut ready);
    assert!(ready.is_empty());
    assert_eq!(latches.counts(), (1, 1));
}

#[test]
fn discarding_gives_back_who_waited() {
    let latches = Latches::new(8);
    assert!(latches.acquire(command(1, &[1])).is_some());
    assert!(latches.acquire(command(2, &[1])).is_none());
    assert_eq!(latches.discard(), [command(2, &[1])]);
    assert_eq!(latches.counts(), (0, 0));
}

proptest! {
    /// Against a plain model: holders never overlap, everybody gets through, each key is served in the order of asking.
    #[test]
    fn nobody_overlaps_nobody_starves_nobody_overtakes(
        wants in proptest::collection::vec(proptest::collection::btree_set(0u64..6, 1..4), 1..30),
        slots in prop_oneof![Just(1usize), Just(2), Just(8)],
        picks in proptest::collection::vec(any::<proptest::sample::Index>(), 60),
    ) {
        let latches = Latches::new(slots);
        let mut running: Vec<Command> = Vec::new();
        let mut done = BTreeSet::new();
        let mut served: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut picks = picks.into_iter().cycle();
        let mut todo: VecDeque<_> = wants.iter().enumerate()
            .map(|(id, hashes)| command(id as u64, &hashes.iter().copied().collect::<Vec<_>>())).collect();
        while done.len() < wants.len() {
            let submit = !todo.is_empty() && (running.is_empty() || picks.next().unwrap().index(2) == 0);
            let mut ready = Vec::new();
            if submit {
                ready.extend(latches.acquire(todo.pop_front().unwrap()));
            } else {
                prop_assert!(!running.is_empty(), "everybody waits and nobody runs");
                let finished = running.swap_remove(picks.next().unwrap().index(running.len()));
                latches.release(finished.id, &finished.hashes, &mut ready);
                done.insert(finished.id);
            }
            for started in ready {
                for other in &running {
                    prop_assert!(other.hashes.iter().all(|h| !started.hashes.contains(h)));
                }
                started.hashes.iter().for_each(|&h| served.entry(h).or_default().push(started.id));
                running.push(started);
            }
        }
        prop_assert_eq!(latches.counts(), (0, 0));
        // Commands with one and the same key set were served in the order in which they came.
        for order in served.values() {
            for (a, b) in order.iter().zip(order.iter().skip(1)) {
                if wants[*a as usize] == wants[*b as usize] {
                    prop_assert!(a < b, "{order:?}");
                }
            }
        }
    }
}
