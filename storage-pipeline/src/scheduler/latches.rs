//! Latches: one command at a time per key, first come first served. Hands on the commands that now hold all theirs.

use std::collections::VecDeque;

use crossbeam_utils::CachePadded;

use crate::primitive::{Mutex, MutexGuard};

/// Whoever waits for latches. It is queued by value, so a waiter is data and never a blocked thread.
pub trait Waiter {
    /// A number of its own, which names it as the holder.
    fn id(&self) -> u64;
    /// Hashes of its keys, ascending and without repeats. Everybody acquires in this order, so nobody deadlocks.
    fn hashes(&self) -> &[u64];
}

/// The latches of one region. A latch is held or not per key hash; the slots only spread the locks.
///
/// A waiter acquires its hashes in ascending order and queues at the first that is held, still holding those before.
/// Its place in the queue says how far it has come, so whoever wakes it can go on from there.
#[derive(Debug)]
pub struct Latches<W> {
    slots: Box<[CachePadded<Mutex<Slot<W>>>]>,
}

#[derive(Debug)]
struct Slot<W> {
    held: Vec<Latch<W>>,
}

#[derive(Debug)]
struct Latch<W> {
    hash: u64,
    holder: u64,
    waiting: VecDeque<W>,
}

impl<W: Waiter> Latches<W> {
    /// Latches over this many slots, a power of two.
    ///
    /// # Panics
    /// Where the number is not a power of two.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "the number of latch slots is a power of two");
        let slot = || CachePadded::new(Mutex::new(Slot { held: Vec::new() }));
        Self { slots: std::iter::repeat_with(slot).take(slots).collect() }
    }

    /// Gives the waiter back where it holds all its latches now; otherwise it is queued, and [`release`](Self::release)
    /// hands it out later.
    #[must_use = "the command that holds its latches has to go on"]
    pub fn acquire(&self, waiter: W) -> Option<W> {
        self.acquire_from(waiter, 0)
    }

    /// Releases every latch of a holder and adds to `ready` those who now hold all of theirs, in the order of the
    /// queues. Nothing of theirs runs here.
    pub fn release(&self, id: u64, hashes: &[u64], ready: &mut Vec<W>) {
        for &hash in hashes {
            if let Some(next) = self.hand_over(id, hash) {
                let reached = next.hashes().partition_point(|&other| other <= hash);
                ready.extend(self.acquire_from(next, reached));
            }
        }
    }

    /// Drops every queue and every hold, for the end of the store. What waited is given back, so that nothing is
    /// dropped under a lock.
    #[must_use = "waiters carry callbacks"]
    pub fn discard(&self) -> Vec<W> {
        let latches = self.slots.iter().flat_map(|slot| std::mem::take(&mut slot.lock().held));
        latches.flat_map(|latch| latch.waiting).collect()
    }

    /// How many latches are held and how many waiters queue.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        self.slots.iter().fold((0, 0), |(held, waiting), slot| {
            let slot = slot.lock();
            (
                held + slot.held.len(),
                waiting + slot.held.iter().map(|latch| latch.waiting.len()).sum::<usize>(),
            )
        })
    }

    fn acquire_from(&self, waiter: W, reached: usize) -> Option<W> {
        let mut index = reached;
        while let Some(&hash) = waiter.hashes().get(index) {
            let mut slot = self.slot(hash);
            match slot.held.iter_mut().find(|latch| latch.hash == hash) {
                Some(latch) => {
                    latch.waiting.push_back(waiter);
                    return None;
                }
                None => {
                    slot.held.push(Latch { hash, holder: waiter.id(), waiting: VecDeque::new() });
                }
            }
            index += 1;
        }
        Some(waiter)
    }

    /// Passes one latch to the first in its queue, or frees it.
    fn hand_over(&self, id: u64, hash: u64) -> Option<W> {
        let mut slot = self.slot(hash);
        let at = slot.held.iter().position(|latch| latch.hash == hash && latch.holder == id)?;
        let latch = &mut slot.held[at];
        let next = latch.waiting.pop_front();
        match &next {
            Some(waiter) => latch.holder = waiter.id(),
            None => {
                slot.held.swap_remove(at);
            }
        }
        next
    }

    fn slot(&self, hash: u64) -> MutexGuard<'_, Slot<W>> {
        let mask = self.slots.len() - 1;
        self.slots[hash as usize & mask].lock()
    }
}

#[cfg(all(test, not(storage_pipeline_loom)))]
#[path = "latches_tests.rs"]
mod tests;
