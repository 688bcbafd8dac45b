//! The one source of chance: everything that a run does follows from its seed.

use std::time::Duration;

/// Numbers from a seed.
pub(super) struct Random(fastrand::Rng);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A number below `bound`, which is not zero.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    /// True once in so many times.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// True in so many of a hundred cases.
    pub(super) fn percent(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    /// One of these, of which there is one at least.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A time between these two.
    pub(super) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let nanos = self.0.u64(least.as_nanos() as u64..=most.as_nanos() as u64);
        Duration::from_nanos(nanos)
    }

    /// A seed for something of its own.
    pub(super) fn seed(&mut self) -> u64 {
        self.0.u64(..)
    }
}
