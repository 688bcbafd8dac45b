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
use core::ptr::NonNull;

use super::Dropped;
use crate::callback::Callback;
use crate::primitive::{UnsafeCell, Word, WordCell};
use crate::raw::Header;

/// Wakes whoever waits for the reply.
pub(super) type Waker = Callback<()>;

/// The one allocation of a reply. The callback's word is the address of the header, and stands for a share of it.
#[repr(C)]
pub(super) struct Handoff<T> {
    header: Header<T>,
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

impl<T: Send + 'static> Handoff<T> {
    /// A callback that sends, and the reply's share.
    pub(super) fn new() -> (Callback<T>, Arc<Self>) {
        let header = Header::new(Self::finish);
        let handoff = Arc::new(Handoff { header, bell: WordCell::new(None), value: UnsafeCell::new(None) });
        let sender = Arc::into_raw(Arc::clone(&handoff)).cast_mut();
        // SAFETY: a pointer out of an `Arc` is not null.
        let word = Word::new(unsafe { NonNull::new_unchecked(sender) }.cast());
        // SAFETY: the word points to a header for `T`, whose function takes the share that was given up above, once.
        (unsafe { Callback::from_word(word) }, handoff)
    }

    /// # Safety
    ///
    /// `handoff` is the pointer of a share from [`new`](Handoff::new), which is given up here.
    unsafe fn finish(handoff: NonNull<()>, _: *mut (), value: Option<T>) {
        // SAFETY: by contract.
        let sender = Sender(unsafe { Arc::from_raw(handoff.cast::<Self>().as_ptr()) });
        if let Some(value) = value {
            sender.send(value);
        }
    }
}

impl<T> Handoff<T> {
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
struct Sender<T>(Arc<Handoff<T>>);

impl<T> Sender<T> {
    /// Puts the value in its place; the drop that follows rings.
    fn send(self, value: T) {
        // SAFETY: the bell was not rung, so the place is the sender's, and there is only one sender.
        self.0.value.with_mut(|place| unsafe { *place = Some(value) });
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.ring();
    }
}
