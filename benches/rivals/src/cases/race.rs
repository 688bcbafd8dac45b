//! Two threads walk over the same slots and try to complete each. Exactly one callback runs per slot.

use std::{hint::black_box, sync::Arc, thread, time::Instant};

use super::{BATCH, Lap, relay::relay};
use crate::{
    contender::Slot,
    work::{closure, take_sum},
};

/// Create here, complete by both, drop here.
pub fn race<S: Slot>(operations: u64) -> Lap {
    let (sending, there) = relay::<(Arc<Vec<S>>, u64)>(1);
    let (back, returned) = relay(1);
    thread::scope(|scope| {
        let helper = scope.spawn(move || {
            take_sum();
            while let Some((slots, first)) = there.next() {
                complete_all(&slots, first);
                drop(slots);
                back.send(());
            }
            take_sum()
        });
        let mut slots = Arc::new(Vec::with_capacity(BATCH as usize));
        // The first batch is empty: when it is back the helper is awake.
        sending.send((Arc::clone(&slots), 0));
        returned.next();
        take_sum();
        let start = Instant::now();
        for batch in 0..operations / BATCH {
            let first = batch * BATCH;
            let empty = Arc::get_mut(&mut slots).expect("the helper has dropped its share");
            empty.extend((first..first + BATCH).map(|i| S::armed(closure::<1>(black_box(i)))));
            sending.send((Arc::clone(&slots), first));
            complete_all(&slots, first);
            returned.next();
            Arc::get_mut(&mut slots).expect("the helper has dropped its share").clear();
        }
        let elapsed = start.elapsed();
        drop(sending);
        let told = take_sum() + helper.join().expect("completing does not panic");
        Lap { elapsed, told }
    })
}

/// Create and clone here, complete and drop a handle by both.
pub fn race_with_handles<S: Slot + Clone>(operations: u64) -> Lap {
    let (sending, there) = relay::<(Vec<S>, u64)>(1);
    let (back, returned) = relay(1);
    thread::scope(|scope| {
        let helper = scope.spawn(move || {
            take_sum();
            while let Some((mut slots, first)) = there.next() {
                complete_and_drop_all(&mut slots, first);
                back.send(slots);
            }
            take_sum()
        });
        let mut ours = Vec::with_capacity(BATCH as usize);
        sending.send((Vec::with_capacity(BATCH as usize), 0));
        let mut theirs = returned.next().expect("the helper sends everything back");
        take_sum();
        let start = Instant::now();
        for batch in 0..operations / BATCH {
            let first = batch * BATCH;
            ours.extend((first..first + BATCH).map(|i| S::armed(closure::<1>(black_box(i)))));
            theirs.extend(ours.iter().cloned());
            sending.send((theirs, first));
            complete_and_drop_all(&mut ours, first);
            theirs = returned.next().expect("the helper sends everything back");
        }
        let elapsed = start.elapsed();
        drop(sending);
        let told = take_sum() + helper.join().expect("completing does not panic");
        Lap { elapsed, told }
    })
}

fn complete_all<S: Slot>(slots: &[S], first: u64) {
    for (slot, value) in slots.iter().zip(first..) {
        black_box(slot.complete(value));
    }
}

fn complete_and_drop_all<S: Slot>(slots: &mut Vec<S>, first: u64) {
    for (slot, value) in slots.drain(..).zip(first..) {
        black_box(slot.complete(value));
    }
}
