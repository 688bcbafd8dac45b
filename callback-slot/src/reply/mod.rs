//! The caller's side when it would rather wait than be called: a callback and the reply that it will bring.

mod handoff;
mod waiter;
#[cfg(feature = "wait")]
mod wait;
#[cfg(feature = "future")]
mod future;

use core::error::Error;
use core::fmt;

use crate::callback::Callback;
use crate::primitive::Arc;

use self::handoff::Handoff;
#[cfg(feature = "wait")]
pub use self::wait::WaitError;

/// A callback, and the reply that waits for it to be called.
///
/// The callback goes into any kind of slot. The reply waits with [`wait`](Reply::wait) under the feature `wait`, or is a
/// `Future` under the feature `future`. If the callback is dropped uncalled, the reply says [`Dropped`]; one that is forgotten
/// ([`mem::forget`](core::mem::forget)) answers nobody.
///
/// One allocation, which both sides share; waiting adds none.
///
/// # Panics
///
/// Not here. Whoever calls or drops the callback wakes who waits, on its own thread: a panic of that waker is theirs, and
/// the answer is in place by then.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "wait")] {
/// use callback_slot::{reply, SharedSlot};
/// use std::thread;
///
/// let (callback, reply) = reply();
/// let slot = SharedSlot::from(callback);
/// thread::spawn(move || slot.complete(42));
/// assert_eq!(reply.wait(), Ok(42));
/// # }
/// ```
///
/// The value crosses threads, so here it has to be `Send`:
///
/// ```compile_fail,E0277
/// callback_slot::reply::<std::rc::Rc<u32>>();
/// ```
#[cfg_attr(docsrs, doc(cfg(any(feature = "wait", feature = "future"))))]
pub fn reply<T: Send + 'static>() -> (Callback<T>, Reply<T>) {
    let (callback, handoff) = Handoff::new();
    (callback, Reply { handoff })
}

/// The value that a callback will be called with. Made by [`reply`].
///
/// A reply that is dropped before its callback is called does not stop the call: the value is dropped by whoever calls. One
/// that is dropped later drops the value itself.
///
/// # Ordering
///
/// Everything that happened before the call of the callback is visible once the reply has answered.
///
/// # Examples
///
/// ```
/// let (callback, reply) = callback_slot::reply();
/// assert!(!reply.is_ready());
/// callback.call(7);
/// assert!(reply.is_ready());
/// assert_eq!(reply.try_into_value().unwrap(), Ok(7));
/// ```
#[cfg_attr(docsrs, doc(cfg(any(feature = "wait", feature = "future"))))]
#[must_use = "a reply that is dropped waits for nothing"]
pub struct Reply<T> {
    handoff: Arc<Handoff<T>>,
}

impl<T> Reply<T> {
    /// Whether waiting would return at once: the callback was called, or dropped.
    ///
    /// No mere hint: once true it stays true, and what happened before the call is visible.
    ///
    /// # Examples
    ///
    /// ```
    /// let (callback, reply) = callback_slot::reply::<u32>();
    /// drop(callback);
    /// assert!(reply.is_ready());
    /// ```
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.handoff.is_rung()
    }

    /// The answer if it is there.
    ///
    /// # Errors
    ///
    /// Gives the reply back if the callback was neither called nor dropped yet.
    ///
    /// # Examples
    ///
    /// ```
    /// let (callback, reply) = callback_slot::reply();
    /// let reply = reply.try_into_value().expect_err("not called yet");
    /// callback.call(7);
    /// assert_eq!(reply.try_into_value().unwrap(), Ok(7));
    /// ```
    pub fn try_into_value(self) -> Result<Result<T, Dropped>, Self> {
        self.handoff.answer().ok_or(self)
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        // Nobody is there to be woken any more.
        drop(self.handoff.unregister());
    }
}

/// Says whether the answer is there.
impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ready() { "Reply(ready)" } else { "Reply(pending)" })
    }
}

/// The callback of a [`Reply`] was dropped uncalled, so there is no value and there will be none.
///
/// # Examples
///
/// ```
/// let (callback, reply) = callback_slot::reply::<u32>();
/// drop(callback);
/// let dropped = reply.try_into_value().unwrap().unwrap_err();
/// assert_eq!(dropped.to_string(), "the callback was dropped uncalled");
/// ```
#[cfg_attr(docsrs, doc(cfg(any(feature = "wait", feature = "future"))))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped;

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the callback was dropped uncalled")
    }
}

impl Error for Dropped {}
