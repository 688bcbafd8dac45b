//! A small board on which a scheduler and its workers share pending writes. It stands for any project that uses the slot.
//!
//! The project has its own locks next to the slot, so it switches them to loom's under the same cfg as the slot does.
//! Nothing else is needed: with `--cfg callback_slot_loom` the slot's atomics are loom's already.

use callback_slot::SharedSlot;

#[cfg(callback_slot_loom)]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(callback_slot_loom))]
use std::sync::{Mutex, MutexGuard};

/// What the caller of a write is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The write was done, as the so-many-th.
    Applied(u64),
    /// It was never begun.
    Closed,
    /// A worker had begun it and went away.
    Lost,
}

/// A write under way: the worker's half of the slot.
pub struct Write {
    slot: SharedSlot<Outcome>,
}

impl Write {
    /// Tells the caller. Says whether nobody had before.
    pub fn apply(self, index: u64) -> bool {
        self.slot.complete(Outcome::Applied(index)).is_ok()
    }
}

/// The scheduler's side.
#[derive(Default)]
pub struct Board {
    pending: Mutex<Vec<SharedSlot<Outcome>>>,
}

impl Board {
    /// Takes a write and its callback, and hands out the half for a worker.
    pub fn submit(&self, callback: impl FnOnce(Outcome) + Send + 'static) -> Write {
        let slot = SharedSlot::must_call(callback, || Outcome::Lost);
        self.pending().push(slot.clone());
        Write { slot }
    }

    /// Forgets what is finished. The slots go outside the lock, as their callbacks may come back here.
    pub fn sweep(&self) -> usize {
        let (kept, done): (Vec<_>, Vec<_>) = self.pending().drain(..).partition(SharedSlot::is_armed);
        self.pending().extend(kept);
        done.len()
    }

    /// Answers every write that no worker has answered.
    pub fn close(&self) -> usize {
        let pending = std::mem::take(&mut *self.pending());
        pending.into_iter().filter(|slot| slot.complete(Outcome::Closed).is_ok()).count()
    }

    fn pending(&self) -> MutexGuard<'_, Vec<SharedSlot<Outcome>>> {
        self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
