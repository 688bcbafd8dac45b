//! What a callback and its reply share: a place for the value, and a bell that says it was filled.
//!
//! | the bell holds | meaning | put there by |
//! |---|---|---|
//! | `None` | the value is not there, and nobody is to be woken | the start, or the reply when it goes |
//! | a callback's word | the value is not there; that callback wakes the reply's owner | the reply |
//! | the sentinel | the sender has finished and touches nothing any more | the sender; for good |
//!
//! The place belongs to the sender until the bell is rung, and to the reply afterwards. A bell that goes holds no waker:
//! the reply took it back when it went, and the sender when it rang.

use alloc::sync::Arc;
use core::panic::{RefUnwindSafe, UnwindSafe};

use super::Dropped;
use crate::callback::Callback;
use crate::primitive::{UnsafeCell, Word, WordCell};

/// Wakes whoever waits for the reply.
pub(super) type Waker = Callback<()>;

pub(super) struct Handoff<T> {
    bell: WordCell,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is moved from the sender's thread to the reply's, with an order between them by the bell.
unsafe impl<T: Send> Send for Handoff<T> {}
// SAFETY: as above; through `&self` only one side at a time has access, as the table says.
unsafe impl<T: Send> Sync for Handoff<T> {}

// No user code runs while the hand-off is in between two states.
impl<T> UnwindSafe for Handoff<T> {}
impl<T> RefUnwindSafe for Handoff<T> {}

impl<T> Handoff<T> {
    pub(super) fn new() -> Self {
        Handoff { bell: WordCell::new(None), value: UnsafeCell::new(None) }
    }

    pub(super) fn is_rung(&self) -> bool {
        // ORDERING: acquires what the sender wrote before it rang.
        self.bell.observe() == Some(Word::SENTINEL)
    }

    /// For the reply: the answer if the bell was rung. A value is there only the first time.
    pub(super) fn answer(&self) -> Option<Result<T, Dropped>> {
        // SAFETY: the bell was rung, so the place is the reply's, and there is only one reply.
        self.is_rung().then(|| self.value.with_mut(|value| unsafe { &mut *value }.take()).ok_or(Dropped))
    }

    /// For the reply: has `waker` called when the bell is rung. Says whether it was rung already.
    pub(super) fn register(&self, waker: Waker) -> bool {
        // ORDERING: releases the waker to the sender; acquires the value if the bell was rung.
        let old = self.bell.swap(Some(waker.into_word()));
        let rung = old == Some(Word::SENTINEL);
        // When the bell was rung the sender has finished, so nobody sees it silent in between.
        let forgotten = if rung { self.bell.swap(old) } else { old };
        drop(own(forgotten));
        rung
    }

    /// For the reply that goes: takes back the waker, if it is still there.
    pub(super) fn unregister(&self) -> Option<Waker> {
        // ORDERING: nothing to publish. A rung bell is silenced for good, but nobody will look at it.
        own(self.bell.swap(None))
    }

    /// For the sender, once: the place is the reply's from now on.
    fn ring(&self) {
        // ORDERING: releases the value to the reply; acquires the waker.
        if let Some(waker) = own(self.bell.swap(Some(Word::SENTINEL))) {
            waker.call(());
        }
    }
}

/// The waker behind a word that was taken out of a bell.
fn own(word: Option<Word>) -> Option<Waker> {
    // SAFETY: a word in a bell is the sentinel or an owned waker, and an operation that removes it owns it.
    word.filter(|&word| word != Word::SENTINEL).map(|word| unsafe { Callback::from_word(word) })
}

/// The sender's side: rings the bell exactly once, with a value or, when dropped, without.
pub(super) struct Sender<T>(Arc<Handoff<T>>);

impl<T> Sender<T> {
    pub(super) fn new(handoff: Arc<Handoff<T>>) -> Self {
        Sender(handoff)
    }

    /// Puts the value in its place; the drop that follows rings.
    pub(super) fn send(self, value: T) {
        // SAFETY: the bell was not rung, so the place is the sender's, and there is only one sender.
        self.0.value.with_mut(|place| unsafe { *place = Some(value) });
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.ring();
    }
}
