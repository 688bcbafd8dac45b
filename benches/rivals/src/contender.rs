//! What a contender can be asked for: to be a slot that many reach, or to hand one callback over.

use std::{hint::black_box, sync::Arc};

use crate::work::{Closure, Guarded};

/// One object that many threads can reach, and of which one takes the callback out.
pub trait Slot: Send + Sync + Sized + 'static {
    /// A slot that holds `closure`.
    fn armed<F: Closure>(closure: F) -> Self;

    /// Takes the callback out and calls it. `false` if somebody else was first.
    fn complete(&self, value: u64) -> bool;

    /// A slot whose closure runs in any case.
    #[inline(always)]
    fn must_call<F: Closure, G: FnOnce() -> u64 + Send + 'static>(closure: F, fallback: G) -> Self {
        let guarded = Guarded::new(closure, fallback);
        Self::armed(move |value| guarded.call(value))
    }
}

/// A slot that can be asked whether it still holds its callback, without taking it.
pub trait Poll: Slot {
    /// Whether the callback is there.
    fn is_armed(&self) -> bool;
}

impl<S: Slot> Slot for Arc<S> {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        Arc::new(S::armed(closure))
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        S::complete(self, value)
    }
}

/// A callback that goes from the side that waits (near) to the side that completes (far), each with one owner.
///
/// A slot has nothing to do on the near side; a channel may carry the closure, or only the result of the other side.
pub trait HandOver: 'static {
    /// What the caller keeps.
    type Near<F: Closure>;
    /// What the one who completes gets.
    type Far: Send + 'static;

    /// Both sides of a new hand-over.
    fn open<F: Closure>(closure: F) -> (Self::Near<F>, Self::Far);

    /// The far side completes. Here, and not before, the compiler loses sight of it: it may be moved here for free.
    fn finish(far: Self::Far, value: u64);

    /// The near side does what is left to do, after the far side has completed.
    fn collect<F: Closure>(near: Self::Near<F>);

    /// Opens a hand-over whose far side is dropped at once: the closure has to run with the fallback's value.
    fn abandon<F: Closure, G: FnOnce() -> u64 + Send + 'static>(closure: F, fallback: G);
}

impl<S: Slot> HandOver for S {
    type Near<F: Closure> = ();
    type Far = S;

    #[inline(always)]
    fn open<F: Closure>(closure: F) -> ((), S) {
        ((), S::armed(closure))
    }

    #[inline(always)]
    fn finish(far: S, value: u64) {
        black_box(&far).complete(value);
    }

    #[inline(always)]
    fn collect<F: Closure>((): ()) {}

    #[inline(always)]
    fn abandon<F: Closure, G: FnOnce() -> u64 + Send + 'static>(closure: F, fallback: G) {
        let slot = S::must_call(closure, fallback);
        black_box(&slot);
    }
}
