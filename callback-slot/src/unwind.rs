//! What becomes of a panic in a must-call fallback, which runs inside a drop.

#[cfg(feature = "std")]
use core::panic::AssertUnwindSafe;
#[cfg(feature = "std")]
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "std")]
static FALLBACK_PANICS: AtomicUsize = AtomicUsize::new(0);

/// How many panics were caught in must-call fallbacks since the process started.
///
/// A must-call callback that is dropped uncalled runs inside a drop, often while another panic unwinds, so nobody is
/// there to hand the panic to. With the feature `std` it is caught and counted here; a monitor can watch the count. The
/// panic hook has run as for any panic.
///
/// # Ordering
///
/// The count is a statistic: reading it orders nothing.
///
/// # Examples
///
/// ```
/// use callback_slot::{fallback_panics, Callback};
///
/// let before = fallback_panics();
/// drop(Callback::must_call(|_: u32| panic!("in a drop"), || 7));
/// assert_eq!(fallback_panics(), before + 1);
/// ```
#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
#[must_use]
pub fn fallback_panics() -> usize {
    // ORDERING: Relaxed, a statistic.
    FALLBACK_PANICS.load(Ordering::Relaxed)
}

/// Runs `fallback`, catches and counts its panic.
#[cfg(feature = "std")]
pub(crate) fn contain(fallback: impl FnOnce()) {
    if let Err(payload) = catch(fallback) {
        // ORDERING: Relaxed, a statistic.
        FALLBACK_PANICS.fetch_add(1, Ordering::Relaxed);
        // The payload is a user's value too, and its destructor may panic in turn: then the second one is leaked.
        if let Err(second) = catch(move || drop(payload)) {
            core::mem::forget(second);
        }
    }
}

/// Runs `fallback`; its panic goes on, and aborts if another is already unwinding: `core` cannot catch.
#[cfg(not(feature = "std"))]
#[inline]
pub(crate) fn contain(fallback: impl FnOnce()) {
    fallback();
}

/// Runs `call` and catches its panic. What the panic leaves behind belongs to the closure that panicked.
#[cfg(feature = "std")]
pub(crate) fn catch(call: impl FnOnce()) -> std::thread::Result<()> {
    std::panic::catch_unwind(AssertUnwindSafe(call))
}
