//! Waiting for a reply by blocking the thread, for ever or for a while.

use core::error::Error;
use core::fmt;
#[cfg(not(callback_slot_loom))]
use std::time::{Duration, Instant};

#[cfg(callback_slot_loom)]
use loom::thread;
#[cfg(not(callback_slot_loom))]
use std::thread;

use super::waiter::Waiter;
use super::{Dropped, Reply};

impl<T> Reply<T> {
    /// Blocks until the callback was called or dropped.
    ///
    /// Somebody else has to do that: a thread that owns the callback, or that the callback's owner waits for, waits for ever.
    ///
    /// # Errors
    ///
    /// [`Dropped`], if the callback was dropped uncalled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::thread;
    /// let (callback, reply) = callback_slot::reply();
    /// thread::spawn(move || callback.call("done"));
    /// assert_eq!(reply.wait(), Ok("done"));
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "wait")))]
    pub fn wait(self) -> Result<T, Dropped> {
        self.register_thread();
        loop {
            if let Some(answer) = self.handoff.answer() {
                return answer;
            }
            thread::park();
        }
    }

    /// Blocks until the callback was called or dropped, or until `timeout` is over.
    ///
    /// A timeout ends the waiting and nothing else: the callback can still be called, and the reply that the error gives
    /// back can wait on. Absent under loom, whose waits never expire.
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`] with the reply, or [`WaitError::Dropped`] if the callback was dropped uncalled.
    ///
    /// # Examples
    ///
    /// ```
    /// use callback_slot::WaitError;
    /// use std::time::Duration;
    ///
    /// let (callback, reply) = callback_slot::reply();
    /// let Err(WaitError::TimedOut(reply)) = reply.wait_timeout(Duration::from_millis(1)) else { unreachable!() };
    /// callback.call(7);
    /// assert_eq!(reply.wait_timeout(Duration::MAX).unwrap(), 7);
    /// ```
    #[cfg(not(callback_slot_loom))]
    #[cfg_attr(docsrs, doc(cfg(feature = "wait")))]
    pub fn wait_timeout(self, timeout: Duration) -> Result<T, WaitError<T>> {
        // A timeout that ends after the clock does is none.
        let deadline = Instant::now().checked_add(timeout);
        self.register_thread();
        loop {
            if let Some(answer) = self.handoff.answer() {
                return answer.map_err(|Dropped| WaitError::Dropped);
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => return Err(WaitError::TimedOut(self)),
                Some(left) => thread::park_timeout(left),
            }
        }
    }

    /// Has the bell wake this thread, from now on and instead of whoever waited before.
    fn register_thread(&self) {
        if !self.is_ready() {
            self.handoff.register(Waiter::Thread(thread::current()));
        }
    }
}

/// Why waiting for a [`Reply`] ended without a value.
///
/// # Examples
///
/// ```
/// use callback_slot::WaitError;
/// use std::time::Duration;
///
/// let (callback, reply) = callback_slot::reply::<u32>();
/// drop(callback);
/// assert!(matches!(reply.wait_timeout(Duration::from_secs(9)), Err(WaitError::Dropped)));
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "wait")))]
pub enum WaitError<T> {
    /// The time was over first. The reply can wait again.
    TimedOut(Reply<T>),
    /// The callback was dropped uncalled.
    Dropped,
}

/// Names the reason. The value is not there, so it needs no `Debug`.
impl<T> fmt::Debug for WaitError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitError::TimedOut(_) => "TimedOut(..)",
            WaitError::Dropped => "Dropped",
        })
    }
}

impl<T> fmt::Display for WaitError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitError::TimedOut(_) => f.write_str("timed out before the callback was called"),
            WaitError::Dropped => Dropped.fmt(f),
        }
    }
}

impl<T> Error for WaitError<T> {}
