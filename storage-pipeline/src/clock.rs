//! The monotonic clock of the pipeline's decisions. An ordinary build reads the machine's; under a simulator a thread
//! reads the one that it was given, so that a whole cluster lives in virtual time.

use std::time::Instant;

/// What time it is.
#[cfg(not(feature = "simulator"))]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(feature = "simulator")]
thread_local! {
    static GIVEN: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// What time it is: the machine's time on a thread that was given no other.
#[cfg(feature = "simulator")]
pub(crate) fn now() -> Instant {
    GIVEN.get().unwrap_or_else(Instant::now)
}

/// From here on it is this time on the current thread, until it is given another one, or the machine's again.
#[cfg(feature = "simulator")]
pub(crate) fn give(now: Option<Instant>) {
    GIVEN.set(now);
}
