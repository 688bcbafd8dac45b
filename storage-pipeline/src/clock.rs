//! The monotonic clock of the pipeline's decisions, in one place so that a simulator can put another one there.

use std::time::Instant;

/// What time it is.
pub(crate) fn now() -> Instant {
    Instant::now()
}
