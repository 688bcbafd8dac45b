//! The window within which operations are timed: opened once the clients are warm, closed once it has seen one. Hands clients
//! what they look at.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use hdrhistogram::Histogram;

use crate::round::Failure;

/// How long a round warms up, as a part of its timed length.
pub const WARM_UP: f64 = 0.15;

/// How long a window that has seen nothing waits before it looks again.
pub const A_MOMENT: Duration = Duration::from_millis(1);

/// What the clients of a round look at. A window in which no operation ends says nothing: whoever closes it waits until it
/// [has seen](Self::wait_seen) one, or no client is left.
///
/// ```
/// use std::time::Duration;
/// let (window, mut timed) = (benches::window::Window::default(), hdrhistogram::Histogram::new(3).unwrap());
/// window.open();
/// assert!(window.is_open() && !window.has_seen());
/// window.record(&mut timed, Duration::from_micros(3)).unwrap();
/// assert!(window.has_seen() && timed.len() == 1);
/// window.close();
/// assert!(!window.is_open() && !window.is_over());
/// ```
#[derive(Debug, Default)]
pub struct Window {
    timing: AtomicBool,
    seen: AtomicBool,
    over: AtomicBool,
}

// ORDERING: Relaxed for all: an operation more or less at the edges.
impl Window {
    /// Operations are timed from now on.
    pub fn open(&self) {
        self.timing.store(true, Ordering::Relaxed);
    }

    /// No operation is timed any more.
    pub fn close(&self) {
        self.timing.store(false, Ordering::Relaxed);
    }

    /// Clients end, each with the operation that it is at.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether operations are timed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.timing.load(Ordering::Relaxed)
    }

    /// Whether an operation was timed.
    #[must_use]
    pub fn has_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// Waits until an operation was timed, or `is_left` says that no client is left.
    pub fn wait_seen(&self, is_left: impl Fn() -> bool) {
        while !self.has_seen() && is_left() {
            thread::sleep(A_MOMENT);
        }
    }

    /// Whether clients are to end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Keeps what an operation took with what its client has timed, in nanoseconds.
    ///
    /// # Errors
    /// It took longer than the histogram can hold.
    pub fn record(&self, timed: &mut Histogram<u64>, took: Duration) -> Result<(), Failure> {
        if timed.is_empty() {
            self.seen.store(true, Ordering::Relaxed);
        }
        Ok(timed.record(u64::try_from(took.as_nanos())?)?)
    }
}
