//! Completing a slot, written once for all forms: what the winner does, and what the loser is told.

use core::error::Error;
use core::fmt;

use crate::raw::Won;

/// Why a slot could not be completed. It carries back what the caller brought.
///
/// For `complete` that is the value; for `complete_with` it is the closure that would have built the value, unused.
///
/// # Examples
///
/// ```
/// use callback_slot::{CallbackSlot, CompleteError};
///
/// let slot = CallbackSlot::<String>::empty();
/// let error = slot.complete(String::from("kept")).unwrap_err();
/// assert!(matches!(error, CompleteError::NeverArmed(_)));
/// assert_eq!(error.into_inner(), "kept");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CompleteError<V> {
    /// No callback was in the slot yet. The slot is as it was and can still be armed.
    NeverArmed(V),
    /// Somebody else took the callback. It need not have returned yet, nor even have begun.
    AlreadyCompleted(V),
}

impl<V> CompleteError<V> {
    /// What the caller brought.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::CompleteError;
    /// assert_eq!(CompleteError::AlreadyCompleted(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> V {
        match self {
            CompleteError::NeverArmed(value) | CompleteError::AlreadyCompleted(value) => value,
        }
    }

    /// The same reason, about something else.
    fn map<W>(self, change: impl FnOnce(V) -> W) -> CompleteError<W> {
        match self {
            CompleteError::NeverArmed(value) => CompleteError::NeverArmed(change(value)),
            CompleteError::AlreadyCompleted(value) => CompleteError::AlreadyCompleted(change(value)),
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            CompleteError::NeverArmed(_) => "the slot was never armed",
            CompleteError::AlreadyCompleted(_) => "the slot is already completed",
        }
    }
}

/// Names the reason. The value is left out, so it needs no `Debug`.
impl<V> fmt::Debug for CompleteError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompleteError::NeverArmed(_) => "NeverArmed(..)",
            CompleteError::AlreadyCompleted(_) => "AlreadyCompleted(..)",
        })
    }
}

impl<V> fmt::Display for CompleteError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl<V> Error for CompleteError<V> {}

/// How a callback ended that was called by a catching call.
///
/// # Examples
///
/// ```
/// use callback_slot::{CallOutcome, Callback};
///
/// let outcome = Callback::new(|_: u32| panic!("lost")).call_catching(7);
/// let CallOutcome::Panicked(payload) = outcome else { unreachable!() };
/// assert_eq!(*payload.downcast_ref::<&str>().unwrap(), "lost");
/// ```
#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
#[derive(Debug)]
#[must_use = "a panic of the callback is in here"]
pub enum CallOutcome {
    /// The callback returned.
    Returned,
    /// The callback, or a destructor of what it captured or was given, panicked with this payload.
    Panicked(alloc::boxed::Box<dyn core::any::Any + Send>),
}

#[cfg(feature = "std")]
impl CallOutcome {
    /// Whether the callback returned.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::Callback;
    /// assert!(Callback::new(|_: u32| ()).call_catching(7).is_returned());
    /// ```
    #[must_use]
    pub fn is_returned(&self) -> bool {
        matches!(self, CallOutcome::Returned)
    }
}

/// A claim on a slot: the callback, or the reason why not.
pub(crate) type Claimed<T> = Result<Won<T>, CompleteError<()>>;

/// Calls the callback with the value, or gives the value back.
#[inline]
pub(crate) fn complete<T>(claimed: Claimed<T>, value: T) -> Result<(), CompleteError<T>> {
    match claimed {
        Ok(won) => {
            won.call(value);
            Ok(())
        }
        Err(error) => Err(error.map(|()| value)),
    }
}

/// Builds the value and calls the callback with it, or gives the builder back.
///
/// If `build` panics, the callback is dropped, and falls back if it is a must-call.
#[inline]
pub(crate) fn complete_with<T, F: FnOnce() -> T>(
    claimed: Claimed<T>,
    build: F,
) -> Result<(), CompleteError<F>> {
    match claimed {
        Ok(won) => {
            won.call(build());
            Ok(())
        }
        Err(error) => Err(error.map(|()| build)),
    }
}

/// Calls the callback with the value and catches its panic, or gives the value back.
#[cfg(feature = "std")]
pub(crate) fn complete_catching<T>(claimed: Claimed<T>, value: T) -> Result<CallOutcome, CompleteError<T>> {
    match claimed {
        Ok(won) => Ok(call_catching(won, value)),
        Err(error) => Err(error.map(|()| value)),
    }
}

/// Calls the callback with the value and catches its panic.
#[cfg(feature = "std")]
pub(crate) fn call_catching<T>(won: Won<T>, value: T) -> CallOutcome {
    match crate::unwind::catch(move || won.call(value)) {
        Ok(()) => CallOutcome::Returned,
        Err(payload) => CallOutcome::Panicked(payload),
    }
}
