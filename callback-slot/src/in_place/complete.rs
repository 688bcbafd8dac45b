//! Completing a slot in place: the winner moves the closure out of the owner's memory and runs it.

use super::InPlaceSlot;
#[cfg(feature = "std")]
use crate::complete::CallOutcome;
use crate::complete::{self, Claimed, CompleteError};
use crate::raw::Won;

impl<T, const WORDS: usize> InPlaceSlot<T, WORDS> {
    /// Calls the callback with `value`, unless somebody else was first.
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
    /// use callback_slot::{CompleteError, InPlaceSlot};
    ///
    /// let slot = InPlaceSlot::<u32>::new(drop);
    /// assert_eq!(slot.complete(1), Ok(()));
    /// assert_eq!(slot.complete(2), Err(CompleteError::AlreadyCompleted(2)));
    /// ```
    #[inline]
    pub fn complete(&self, value: T) -> Result<(), CompleteError<T>> {
        complete::complete(self.claim(), value)
    }

    /// Like [`complete`](InPlaceSlot::complete), but only the winner builds the value.
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
    /// # use callback_slot::InPlaceSlot;
    /// let slot = InPlaceSlot::<String>::new(|report| println!("{report}"));
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

    /// Like [`complete`](InPlaceSlot::complete), but catches the callback's panic.
    ///
    /// # Errors
    ///
    /// Gives the value back and says why.
    ///
    /// # Examples
    ///
    /// ```
    /// use callback_slot::{CallOutcome, InPlaceSlot};
    ///
    /// let slot = InPlaceSlot::<u32>::new(|_| panic!("a caller's fault"));
    /// assert!(matches!(slot.complete_catching(7), Ok(CallOutcome::Panicked(_))));
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
    /// # use callback_slot::InPlaceSlot;
    /// let slot = InPlaceSlot::<u32>::new(drop);
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
            // SAFETY: this call has won the word, so the task is nobody else's. It lies in the storage, which `&self` keeps
            // where it is; completing borrows it to the end.
            unsafe { Won::new(word, self.place()) }
        })
    }
}
