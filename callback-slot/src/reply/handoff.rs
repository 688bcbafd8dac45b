//! What a callback and its reply share: a place for the value, a place for who waits, and a bell that says what is there.
//!
//! | the bell says | the value's place belongs to | the waiter's place belongs to | left by |
//! |---|---|---|---|
//! | SILENT | the sender | the reply, and is empty | either |
//! | AWAITED | the sender | whoever leaves this state, and is full | either |
//! | RUNG | the reply | nobody: the sender has emptied it, or is about to | nobody |
//!
//! The reply goes between SILENT and AWAITED, the sender once to RUNG. Both places lie in the one allocation, so waiting
//! costs none. It goes with the last of the two shares, and no waiter is left in it by then: the reply took it back when it
//! went, or the sender when it rang.

use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use super::waiter::Waiter;
use super::Dropped;
use crate::callback::Callback;
use crate::primitive::{ordering, Arc, AtomicUsize, UnsafeCell, Word};
use crate::raw::Header;

const SILENT: usize = 0;
const AWAITED: usize = 1;
const RUNG: usize = 2;

/// The one allocation of a reply. The callback's word is the address of the header, and stands for a share of it.
#[repr(C)]
pub(super) struct Handoff<T> {
    header: Header<T>,
    bell: AtomicUsize,
    waiter: UnsafeCell<Option<Waiter>>,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is moved from the sender's thread to the reply's, and the waiter back, each with an order between them
// by the bell.
unsafe impl<T: Send> Send for Handoff<T> {}
// SAFETY: as above; through `&self` only one side at a time has access to a place, as the table says.
unsafe impl<T: Send> Sync for Handoff<T> {}

// No user code runs while the hand-off is in between two states.
impl<T> UnwindSafe for Handoff<T> {}
impl<T> RefUnwindSafe for Handoff<T> {}

impl<T: Send + 'static> Handoff<T> {
    /// A callback that sends, and the reply's share.
    pub(super) fn new() -> (Callback<T>, Arc<Self>) {
        let handoff = Arc::new(Handoff {
            header: Header::new(Self::finish),
            bell: AtomicUsize::new(SILENT),
            waiter: UnsafeCell::new(None),
            value: UnsafeCell::new(None),
        });
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
        let handoff = handoff.cast::<Self>().as_ptr();
        // SAFETY: by contract.
        let sender = Sender(unsafe { Arc::from_raw(handoff) });
        if cfg!(callback_slot_mutation = "share_goes_first") {
            // SAFETY: none: the mutation gives up the share while it is used.
            drop(unsafe { Arc::from_raw(handoff) });
        }
        if let Some(value) = value {
            sender.send(value);
        }
    }
}

impl<T> Handoff<T> {
    pub(super) fn is_rung(&self) -> bool {
        // ORDERING: Acquire, pairs with `ring`: the value that the bell announces is read next.
        self.bell.load(ordering!(Acquire, "observe_relaxed" => Relaxed)) == RUNG
    }

    /// For the reply: the answer if the bell was rung. A value is there only the first time.
    pub(super) fn answer(&self) -> Option<Result<T, Dropped>> {
        // SAFETY: the bell was rung, so the place is the reply's, and there is only one reply.
        self.is_rung().then(|| self.value.with_mut(|value| unsafe { &mut *value }.take()).ok_or(Dropped))
    }

    /// For the reply: has `waiter`, and nobody who waited before, woken when the bell is rung. Does nothing if it was rung.
    pub(super) fn register(&self, waiter: Waiter) {
        // Lives on to the end: its destructor may be user code, and panic.
        let _forgotten = match self.silence() {
            Silenced::WasRung => return,
            Silenced::Waiter(forgotten) => forgotten,
        };
        // SAFETY: the bell is silent, and if the sender rings it now it finds nobody to wake.
        self.waiter.with_mut(|place| unsafe { *place = Some(waiter) });
        // ORDERING: Release, pairs with `ring`, which takes the waiter out. Relaxed on failure: nothing is read but what
        // was written above.
        let release = ordering!(Release, "register_relaxed" => Relaxed);
        if self.bell.compare_exchange(SILENT, AWAITED, release, Ordering::Relaxed).is_err() {
            // SAFETY: the sender found the bell silent, so it leaves the place alone.
            drop(unsafe { self.take_waiter() });
        }
    }

    /// For the reply that goes: takes back the waiter, if it is still there.
    pub(super) fn unregister(&self) -> Option<Waiter> {
        match self.silence() {
            Silenced::WasRung => None,
            Silenced::Waiter(waiter) => waiter,
        }
    }

    /// For the reply: AWAITED → SILENT, or nothing.
    fn silence(&self) -> Silenced {
        // ORDERING: Relaxed, the reply takes out what the reply put in, and after a RUNG nothing is read.
        match self.bell.compare_exchange(AWAITED, SILENT, Ordering::Relaxed, Ordering::Relaxed) {
            // SAFETY: this call has left AWAITED.
            Ok(_) => Silenced::Waiter(unsafe { self.take_waiter() }),
            Err(RUNG) if !cfg!(callback_slot_mutation = "rung_is_silent") => Silenced::WasRung,
            Err(_) => Silenced::Waiter(None),
        }
    }

    /// For the sender, once: the value's place is the reply's from now on.
    fn ring(&self) {
        // ORDERING: Release, pairs with `is_rung`: the value is read there. Acquire, pairs with `register`: the waiter is
        // taken out next.
        let ordering = if cfg!(callback_slot_mutation = "ring_without_release") {
            Ordering::Acquire
        } else if cfg!(callback_slot_mutation = "ring_without_acquire") {
            Ordering::Release
        } else {
            Ordering::AcqRel
        };
        if self.bell.swap(RUNG, ordering) == AWAITED {
            // SAFETY: this call has left AWAITED.
            if let Some(waiter) = unsafe { self.take_waiter() } {
                waiter.wake();
            }
        }
    }

    /// # Safety
    ///
    /// The waiter's place is the caller's, as the table says.
    unsafe fn take_waiter(&self) -> Option<Waiter> {
        // SAFETY: by contract. The borrow ends before anything of the waiter runs.
        self.waiter.with_mut(|place| unsafe { &mut *place }.take())
    }
}

/// What the reply found when it silenced the bell.
enum Silenced {
    /// The sender has finished, and may be about to empty the waiter's place.
    WasRung,
    /// The bell is silent, and this is who waited, if anybody did.
    Waiter(Option<Waiter>),
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
