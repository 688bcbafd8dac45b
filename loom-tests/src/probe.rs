//! Memory that loom watches, shared in ways that loom does not see, so that only the slot can bring order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;

/// A word that is written by one thread and read by another. Loom fails the model unless the two are ordered.
///
/// It is shared by std's `Arc`, which loom does not track: sharing it orders nothing.
#[derive(Clone)]
pub struct Probe(Arc<Watched>);

struct Watched(UnsafeCell<usize>);

// SAFETY: loom runs one thread at a time and reports accesses that are not ordered.
unsafe impl Send for Watched {}
// SAFETY: as above.
unsafe impl Sync for Watched {}

impl Probe {
    /// A probe that was not written yet.
    #[expect(clippy::new_without_default, reason = "a probe belongs to a model")]
    pub fn new() -> Self {
        Probe(Arc::new(Watched(UnsafeCell::new(0))))
    }

    /// Writes; everybody who reads must come after.
    pub fn write(&self) {
        // SAFETY: see the type.
        self.0.0.with_mut(|word| unsafe { *word += 1 });
    }

    /// Reads; every write must have come before.
    ///
    /// # Panics
    ///
    /// If nobody has written.
    pub fn read(&self) {
        // SAFETY: see the type.
        assert_eq!(self.0.0.with(|word| unsafe { *word }), 1, "the write is not visible");
    }
}

/// Counts events, without ordering anything.
#[derive(Clone, Default)]
pub struct Count(Arc<AtomicUsize>);

impl Count {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs a closure when it is dropped: a captured value with a destructor.
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
