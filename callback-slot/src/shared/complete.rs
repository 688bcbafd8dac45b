//! Completing a shared slot, by whichever handle is first.

use super::SharedSlot;
#[cfg(feature = "std")]
use crate::complete::CallOutcome;
use crate::complete::{self, Claimed, CompleteError};
use crate::raw::Won;

impl<T> SharedSlot<T> {
    /// Calls the callback with `value`, unless another handle was first.
    ///
    /// # Errors
    ///
    /// Gives the value back, as [`CompleteError::AlreadyCompleted`].
    ///
    /// # Panics
    ///
    /// If the callback panics; the slot is completed all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use callback_slot::{CompleteError, SharedSlot};
    ///
    /// let slot = SharedSlot::new(drop::<u32>);
    /// assert_eq!(slot.complete(1), Ok(()));
    /// assert_eq!(slot.clone().complete(2), Err(CompleteError::AlreadyCompleted(2)));
    /// ```
    #[inline]
    pub fn complete(&self, value: T) -> Result<(), CompleteError<T>> {
        complete::complete(self.claim(), value)
    }

    /// Like [`complete`](SharedSlot::complete), but only the winner builds the value.
    ///
    /// When `build` runs the slot is already DONE. If it panics, the callback is dropped, or falls back.
    ///
    /// # Errors
    ///
    /// Gives the builder back, not run.
    ///
    /// # Panics
    ///
    /// If `build` or the callback panics; the slot is completed all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::SharedSlot;
    /// let slot = SharedSlot::new(|report: String| println!("{report}"));
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

    /// Like [`complete`](SharedSlot::complete), but catches the callback's panic.
    ///
    /// # Errors
    ///
    /// Gives the value back, as [`CompleteError::AlreadyCompleted`].
    ///
    /// # Examples
    ///
    /// ```
    /// use callback_slot::{CallOutcome, SharedSlot};
    ///
    /// let slot = SharedSlot::new(|_: u32| panic!("a caller's fault"));
    /// assert!(matches!(slot.complete_catching(7), Ok(CallOutcome::Panicked(_))));
    /// ```
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    pub fn complete_catching(&self, value: T) -> Result<CallOutcome, CompleteError<T>> {
        complete::complete_catching(self.claim(), value)
    }

    /// Whether nobody has completed the slot yet. A plain load, for sweepers and for polls.
    ///
    /// # Ordering
    ///
    /// A hint: the answer may be outdated when it arrives, and orders nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::SharedSlot;
    /// let slot = SharedSlot::new(drop::<u32>);
    /// assert!(slot.is_armed());
    /// slot.complete(7).unwrap();
    /// assert!(!slot.is_armed());
    /// ```
    #[inline]
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.node.cell().is_armed()
    }

    #[inline]
    fn claim(&self) -> Claimed<T> {
        // A shared slot is born armed, so the swap alone decides.
        self.node.cell().claim_not_empty().into_result().map(|word| {
            // SAFETY: this call has won the word. The task lies in the node, which the handle keeps alive: completing
            // borrows it to the end.
            unsafe { Won::new(word, self.node.place()) }
        })
    }
}
