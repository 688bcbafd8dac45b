//! What every callback does: it adds its value and all that it has captured to a sum, which shows that it ran.

use std::cell::Cell;

thread_local! {
    static SUM: Cell<u64> = const { Cell::new(0) };
}

/// A callback as the cases make them.
pub trait Closure: FnOnce(u64) + Send + 'static {}

impl<F: FnOnce(u64) + Send + 'static> Closure for F {}

/// Adds to this thread's sum.
#[inline]
pub fn tell(value: u64) {
    SUM.set(SUM.get().wrapping_add(value));
}

/// This thread's sum, which starts again from zero.
pub fn take_sum() -> u64 {
    SUM.replace(0)
}

/// A callback that has captured `WORDS` words, each of them `seed`. It reads them all. Of no words it is zero-sized.
#[inline(always)]
pub fn closure<const WORDS: usize>(seed: u64) -> impl Closure {
    let captured = [seed; WORDS];
    move |value| tell(captured.iter().fold(value, |sum, word| sum.wrapping_add(*word)))
}

/// The sum after callbacks with seeds and values from zero up to `operations`.
#[must_use]
pub fn expected_sum(operations: u64, words: u64) -> u64 {
    (0..operations).fold(0, u64::wrapping_add).wrapping_mul(words.wrapping_add(1))
}

/// A closure that runs in any case: dropped uncalled, it calls itself with what the fallback gives.
///
/// This is how a contender without a must-call form of its own gets one.
pub struct Guarded<F: FnOnce(u64), G: FnOnce() -> u64>(Option<(F, G)>);

impl<F: FnOnce(u64), G: FnOnce() -> u64> Guarded<F, G> {
    /// Guards `closure` by `fallback`.
    #[inline]
    pub fn new(closure: F, fallback: G) -> Self {
        Guarded(Some((closure, fallback)))
    }

    /// Calls the closure; the fallback is not needed then.
    #[inline]
    pub fn call(mut self, value: u64) {
        if let Some((closure, _)) = self.0.take() {
            closure(value);
        }
    }
}

impl<F: FnOnce(u64), G: FnOnce() -> u64> Drop for Guarded<F, G> {
    #[inline]
    fn drop(&mut self) {
        if let Some((closure, fallback)) = self.0.take() {
            closure(fallback());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_what_was_told() {
        (0..100).for_each(|i| closure::<3>(i)(i));
        assert_eq!(take_sum(), expected_sum(100, 3));
        assert_eq!(take_sum(), 0);
    }

    #[test]
    fn a_guarded_closure_runs_once_in_any_case() {
        Guarded::new(closure::<0>(0), || 40).call(2);
        assert_eq!(take_sum(), 2);
        drop(Guarded::new(closure::<0>(0), || 40));
        assert_eq!(take_sum(), 40);
    }

    #[test]
    fn nothing_captured_has_no_size() {
        assert_eq!(size_of_val(&closure::<0>(1)), 0);
        assert_eq!(size_of_val(&closure::<8>(1)), 64);
    }
}
