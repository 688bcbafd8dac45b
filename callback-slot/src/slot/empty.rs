//! Emptying the slot: every operation here tries to win, and exactly one of all of them does.

use core::ptr;

use super::CallbackSlot;
use crate::callback::Callback;
#[cfg(feature = "std")]
use crate::complete::CallOutcome;
use crate::complete::{self, Claimed, CompleteError};
use crate::raw::Won;
use crate::state::Claim;

impl<T> CallbackSlot<T> {
    /// Takes the callback out, for the winner to call or to pass on. A slot that was never armed stays so.
    ///
    /// `None` if it was never armed, or if somebody else was first. A callback that is taken and dropped is dropped as any
    /// other: a must-call falls back.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::CallbackSlot;
    /// let slot = CallbackSlot::new(|answer: u32| assert_eq!(answer, 42));
    /// let callback = slot.take().expect("nobody else has taken it");
    /// assert!(slot.take().is_none());
    /// callback.call(42);
    /// ```
    #[inline]
    #[must_use = "a callback that is dropped is not called, unless it is a must-call"]
    pub fn take(&self) -> Option<Callback<T>> {
        match self.cell.claim() {
            // SAFETY: this call has won the word of a callback that the slot owned.
            Claim::Won(word) => Some(unsafe { Callback::from_word(word) }),
            Claim::NeverArmed | Claim::AlreadyCompleted => None,
        }
    }

    /// Calls the callback with `value`, unless somebody else has taken it.
    ///
    /// # Errors
    ///
    /// Gives the value back and says why.
    ///
    /// # Panics
    ///
    /// If the callback panics; the slot is completed all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use callback_slot::{CallbackSlot, CompleteError};
    ///
    /// let slot = CallbackSlot::new(drop::<u32>);
    /// assert_eq!(slot.complete(1), Ok(()));
    /// assert_eq!(slot.complete(2), Err(CompleteError::AlreadyCompleted(2)));
    /// ```
    #[inline]
    pub fn complete(&self, value: T) -> Result<(), CompleteError<T>> {
        complete::complete(self.claim(), value)
    }

    /// Like [`complete`](CallbackSlot::complete), but only the winner builds the value.
    ///
    /// When `build` runs the slot is already DONE. If it panics, the callback is dropped, or falls back.
    ///
    /// # Errors
    ///
    /// Gives the builder back, not run, and says why.
    ///
    /// # Panics
    ///
    /// If `build` or the callback panics; the slot is completed all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::CallbackSlot;
    /// let slot = CallbackSlot::new(|report: String| println!("{report}"));
    /// assert!(slot.complete_with(|| format!("{:>80}", "costly")).is_ok());
    /// assert!(slot.complete_with(|| unreachable!("no winner, no value")).is_err());
    /// ```
    #[inline]
    pub fn complete_with<F>(&self, build: F) -> Result<(), CompleteError<F>>
    where
        F: FnOnce() -> T,
    {
        complete::complete_with(self.claim(), build)
    }

    /// Like [`complete`](CallbackSlot::complete), but catches the callback's panic.
    ///
    /// # Errors
    ///
    /// Gives the value back and says why.
    ///
    /// # Examples
    ///
    /// ```
    /// use callback_slot::{CallOutcome, CallbackSlot};
    ///
    /// let slot = CallbackSlot::new(|_: u32| panic!("a caller's fault"));
    /// assert!(matches!(slot.complete_catching(7), Ok(CallOutcome::Panicked(_))));
    /// assert!(slot.complete_catching(8).is_err(), "completed, panic or not");
    /// ```
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    pub fn complete_catching(&self, value: T) -> Result<CallOutcome, CompleteError<T>> {
        complete::complete_catching(self.claim(), value)
    }

    /// Whether a callback is waiting in the slot. A plain load, for sweepers and for polls.
    ///
    /// # Ordering
    ///
    /// A hint: the answer may be outdated when it arrives, and orders nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::CallbackSlot;
    /// let slot = CallbackSlot::new(drop::<u32>);
    /// assert!(slot.is_armed());
    /// slot.complete(7).unwrap();
    /// assert!(!slot.is_armed());
    /// ```
    #[inline]
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.cell.is_armed()
    }

    #[inline]
    fn claim(&self) -> Claimed<T> {
        self.cell.claim().into_result().map(|word| {
            // SAFETY: this call has won the word of a callback that the slot owned. Such a callback needs no place.
            unsafe { Won::new(word, ptr::null_mut()) }
        })
    }
}
