//! What a slot costs that has nothing to give, and what it costs to ask.

use std::{hint::black_box, sync::Barrier, thread, time::Instant};

use super::Lap;
use crate::{
    contender::{Poll, Slot},
    work::{closure, take_sum},
};

/// Complete a completed slot, again and again.
pub fn lose<S: Slot>(operations: u64) -> Lap {
    let slot = completed::<S>();
    let start = Instant::now();
    let told = count_losses(&slot, operations);
    Lap { elapsed: start.elapsed(), told }
}

/// The same by two threads at once; an operation is one try of each.
pub fn lose_by_two<S: Slot>(operations: u64) -> Lap {
    let slot = completed::<S>();
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let helper = scope.spawn(|| {
            barrier.wait();
            count_losses(&slot, operations)
        });
        barrier.wait();
        let start = Instant::now();
        let told = count_losses(&slot, operations);
        let others = helper.join().expect("losing does not panic");
        Lap { elapsed: start.elapsed(), told: told + others }
    })
}

/// Ask an armed slot, again and again.
pub fn poll<S: Poll>(operations: u64) -> Lap {
    let slot = S::armed(closure::<1>(1));
    let start = Instant::now();
    let told = (0..operations).map(|_| u64::from(black_box(black_box(&slot).is_armed()))).sum();
    let elapsed = start.elapsed();
    slot.complete(0);
    take_sum();
    Lap { elapsed, told }
}

fn completed<S: Slot>() -> S {
    let slot = S::armed(closure::<1>(1));
    assert!(slot.complete(1), "nobody else has completed it");
    assert_eq!(take_sum(), 2, "the callback ran");
    slot
}

fn count_losses<S: Slot>(slot: &S, operations: u64) -> u64 {
    (0..operations).map(|i| u64::from(!black_box(black_box(slot).complete(i)))).sum()
}
