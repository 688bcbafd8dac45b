//! The slot: one word that many threads may try to empty, and one of them does. How it is filled; `empty` empties it.

mod empty;
mod traits;

use core::marker::PhantomData;

use crate::callback::Callback;
use crate::lock_free;
use crate::primitive::{const_unless_loom, Word};
use crate::state::SlotCell;

/// A one-shot slot for a [`Callback`], in one atomic word.
///
/// Under `&self` a slot goes EMPTY → ARMED → DONE and never back; only `&mut self` takes it back. Of all the calls that
/// race to empty it, by [`take`](CallbackSlot::take) or by completing it in one of three ways, exactly one wins. All of
/// them are wait-free: a bounded number of atomic operations, no waiting, no spurious failure.
///
/// A slot that is dropped armed drops its callback, which falls back if it is a must-call.
///
/// # Ordering
///
/// Everything that happened before the slot was armed, and everything that happened before the call that completes it,
/// is visible in the callback. The same holds for the callback's destructor if it is dropped instead.
///
/// # Re-entrancy and panics
///
/// User code runs only after the slot is DONE, and nothing of the slot is borrowed meanwhile: callback, value and their
/// destructors may call every operation of the same slot. If they panic, the slot is DONE, and nothing leaks or runs
/// twice.
///
/// # Examples
///
/// A write that either finishes or runs out of time:
///
/// ```
/// use callback_slot::CallbackSlot;
/// use std::{sync::Arc, thread};
///
/// let slot = Arc::new(CallbackSlot::new(|outcome: Result<u64, &str>| println!("{outcome:?}")));
/// let timer = Arc::clone(&slot);
///
/// let timeout = thread::spawn(move || timer.complete(Err("timed out")).is_ok());
/// let finished = slot.complete(Ok(7)).is_ok();
/// assert!(finished != timeout.join().unwrap(), "exactly one told the caller");
/// ```
///
/// `T` may not be exchanged for a longer or shorter lifetime, since callbacks go in and out through `&self`:
///
/// ```compile_fail
/// # use callback_slot::CallbackSlot;
/// fn longer<'a>(slot: &'a CallbackSlot<&'a str>) -> &'a CallbackSlot<&'static str> { slot }
/// ```
///
/// ```compile_fail
/// # use callback_slot::CallbackSlot;
/// fn shorter<'a>(slot: &'a CallbackSlot<&'static str>) -> &'a CallbackSlot<&'a str> { slot }
/// ```
#[repr(transparent)]
pub struct CallbackSlot<T> {
    cell: SlotCell,
    // Callbacks are put in and taken out through `&self`, so invariant. Not an owner of a `T`.
    marker: PhantomData<fn(T) -> T>,
}

impl<T> CallbackSlot<T> {
    const_unless_loom! {
        /// A slot without a callback, to be [armed](CallbackSlot::arm) once.
        ///
        /// A `const fn`, so that a slot can be a `static`; not `const` under loom.
        ///
        /// # Examples
        ///
        /// ```
        /// use callback_slot::{Callback, CallbackSlot};
        ///
        /// static ON_EXIT: CallbackSlot<i32> = CallbackSlot::empty();
        ///
        /// ON_EXIT.arm(Callback::new(|code| println!("exit {code}"))).unwrap();
        /// ON_EXIT.complete(0).unwrap();
        /// ```
        #[must_use]
        pub const fn empty() -> Self {
            CallbackSlot { cell: SlotCell::empty(), marker: PhantomData }
        }
    }

    /// A slot that is armed with `closure`. See [`Callback::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::CallbackSlot;
    /// let slot = CallbackSlot::new(|answer: u32| assert_eq!(answer, 42));
    /// slot.complete(42).unwrap();
    /// ```
    #[inline]
    pub fn new<F>(closure: F) -> Self
    where
        F: FnOnce(T) + Send + 'static,
    {
        Callback::new(closure).into()
    }

    /// A slot that is armed with a closure that runs in any case. See [`Callback::must_call`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::CallbackSlot;
    /// let slot = CallbackSlot::must_call(|answer| assert_eq!(answer, Err("dropped")), || Err("dropped"));
    /// # let slot: CallbackSlot<Result<u32, &str>> = slot;
    /// drop(slot);
    /// ```
    #[inline]
    pub fn must_call<F, G>(closure: F, fallback: G) -> Self
    where
        F: FnOnce(T) + Send + 'static,
        G: FnOnce() -> T + Send + 'static,
    {
        Callback::must_call(closure, fallback).into()
    }

    /// Puts a callback into a slot that never had one: one compare-exchange.
    ///
    /// # Errors
    ///
    /// Gives the callback back if the slot is armed or completed.
    ///
    /// # Examples
    ///
    /// ```
    /// use callback_slot::{Callback, CallbackSlot};
    ///
    /// let slot = CallbackSlot::empty();
    /// assert!(slot.arm(Callback::new(|_: u32| ())).is_ok());
    /// assert!(slot.arm(Callback::new(|_: u32| ())).is_err(), "armed already");
    /// ```
    #[inline]
    pub fn arm(&self, callback: Callback<T>) -> Result<(), Callback<T>> {
        let word = callback.into_word();
        if self.cell.arm(word) {
            Ok(())
        } else {
            // SAFETY: the slot did not take the word that was given up above.
            Err(unsafe { Callback::from_word(word) })
        }
    }

    /// Arms the slot in whatever state it is, by whoever is alone with it. Returns the callback it was armed with.
    ///
    /// # Examples
    ///
    /// ```
    /// use callback_slot::{Callback, CallbackSlot};
    ///
    /// let mut slot = CallbackSlot::new(|_: u32| ());
    /// slot.complete(1).unwrap();
    /// assert!(slot.rearm(Callback::new(|_| ())).is_none(), "the first was called");
    /// slot.complete(2).unwrap();
    /// ```
    #[inline]
    pub fn rearm(&mut self, callback: Callback<T>) -> Option<Callback<T>> {
        let old = self.cell.rearm(callback.into_word());
        // SAFETY: the slot owned the callback behind the word and has let go of it.
        old.map(|word| unsafe { Callback::from_word(word) })
    }

    /// Makes the slot empty in whatever state it is, by whoever is alone with it. Returns the callback it was armed with.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::CallbackSlot;
    /// let mut slot = CallbackSlot::new(|_: u32| ());
    /// assert!(slot.reset().is_some());
    /// assert!(slot.complete(7).is_err(), "it is as if never armed");
    /// ```
    #[inline]
    pub fn reset(&mut self) -> Option<Callback<T>> {
        // SAFETY: the slot owned the callback behind the word and has let go of it.
        self.cell.reset().map(|word| unsafe { Callback::from_word(word) })
    }

    /// Whether the slot's word, and an `AtomicCell<Option<Callback<T>>>` of one's own, work without locks.
    ///
    /// True on every target with atomics as wide as a pointer. [`assert_lock_free!`](crate::assert_lock_free!) checks it
    /// when compiling, for other types too.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::CallbackSlot;
    /// const { assert!(CallbackSlot::<String>::is_lock_free()) }
    /// ```
    #[must_use]
    pub const fn is_lock_free() -> bool {
        lock_free::is_lock_free::<Option<Word>>() && lock_free::is_lock_free::<Option<Callback<T>>>()
    }
}

impl<T> Drop for CallbackSlot<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slot owned the callback behind the word, and nobody looks at the word again.
        drop(self.cell.last().map(|word| unsafe { Callback::<T>::from_word(word) }));
    }
}
