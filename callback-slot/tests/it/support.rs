//! What the tests share: counting drops, counting calls, running two things at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

/// How often a race is run. Miri explores schedules by its seeds, a real machine by repetition; `miri.sh` asks for a second
/// round of each seed in its long form.
pub(crate) const ROUNDS: usize = match (cfg!(miri), cfg!(callback_slot_two_rounds)) {
    (true, true) => 2,
    (true, false) => 1,
    (false, _) => 2_000,
};

/// Counts events, seen from several owners.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// A value whose drop is one more event.
    pub(crate) fn on_drop(&self) -> OnDrop {
        OnDrop { count: self.clone(), text: Box::new(7) }
    }
}

/// Counts its drop. Owns memory, so that a second drop or a leak is seen by Miri and by leak checkers too.
pub(crate) struct OnDrop {
    count: Count,
    text: Box<usize>,
}

impl OnDrop {
    /// Uses the memory, so that a use after the drop is seen.
    pub(crate) fn touch(&self) -> usize {
        *self.text
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        assert_eq!(self.touch(), 7);
        self.count.add();
    }
}

/// Runs both at the same time and returns what they return.
pub(crate) fn together<A: Send + 'static, B: Send + 'static>(
    a: impl FnOnce() -> A + Send + 'static,
    b: impl FnOnce() -> B + Send + 'static,
) -> (A, B) {
    let start = Arc::new(Barrier::new(2));
    let other = Arc::clone(&start);
    let b = thread::spawn(move || {
        other.wait();
        b()
    });
    start.wait();
    let a = a();
    (a, b.join().expect("the second thread panicked"))
}
