//! How long to wait before another attempt: twice as long each time, up to a bound, with some chance in it, so that nodes
//! which lost each other at one moment do not all come back at one moment.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(20);
const LAST: Duration = Duration::from_secs(1);

/// The pauses between attempts.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// The next pause: between half and the whole of what it has grown to.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.next = (self.next * 2).min(LAST);
        pause
    }

    /// An attempt succeeded.
    #[cfg(feature = "server")]
    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..12).map(|_| backoff.pause()).collect();
        assert!(pauses[0] >= FIRST / 2 && pauses[0] <= FIRST, "{pauses:?}");
        assert!(pauses[11] >= LAST / 2 && pauses[11] <= LAST, "{pauses:?}");
        #[cfg(feature = "server")]
        backoff.reset();
        #[cfg(feature = "server")]
        assert!(backoff.pause() <= FIRST);
    }
}
