//! The locks and atomics of mailboxes, latches and task contexts: parking_lot's and std's in an ordinary build, loom's
//! under `--cfg storage_pipeline_loom`, so that models run the code that ships. Nothing else may name either.

/// std's in a model too. Loom does not see it, so nothing in a model can be ordered by a count of handles that only keeps
/// memory alive, and no interleavings are spent on it.
pub(crate) use std::sync::Arc;

#[cfg(not(storage_pipeline_loom))]
mod imp {
    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
    use std::time::Instant;

    /// Waits for a notification.
    pub(crate) fn wait<'a, T>(condvar: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condvar.wait(&mut guard);
        guard
    }

    /// Waits for a notification or until a moment.
    pub(crate) fn wait_until<'a, T>(
        condvar: &Condvar,
        mut guard: MutexGuard<'a, T>,
        until: Instant,
    ) -> MutexGuard<'a, T> {
        condvar.wait_until(&mut guard, until);
        guard
    }
}

#[cfg(storage_pipeline_loom)]
mod imp {
    pub(crate) use loom::sync::{
        Condvar, MutexGuard,
        atomic::{AtomicU8, AtomicU64, Ordering},
    };
    use std::time::Instant;

    /// loom's mutex behind parking_lot's signature: a model has no poisoned locks.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a model has no poisoned locks")
        }
    }

    pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condvar.wait(guard).expect("a model has no poisoned locks")
    }

    /// loom's waits never expire: a model runs the time-out as a further thread.
    pub(crate) fn wait_until<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        _: Instant,
    ) -> MutexGuard<'a, T> {
        wait(condvar, guard)
    }
}

pub(crate) use imp::*;
