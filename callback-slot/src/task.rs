//! What a callback does, before its type is forgotten: run with a value, or be dropped without one.

use crate::unwind;

/// Something that is consumed exactly once: with a value, or without.
pub(crate) trait Task<T>: Send + 'static {
    /// Runs the task with `Some` value, or lets it go with `None`.
    fn finish(self, value: Option<T>);
}

/// A closure that is dropped if nobody calls it.
pub(crate) struct Plain<F>(pub(crate) F);

impl<T, F: FnOnce(T) + Send + 'static> Task<T> for Plain<F> {
    #[inline]
    fn finish(self, value: Option<T>) {
        if let Some(value) = value {
            (self.0)(value);
        }
    }
}

/// A closure that runs in any case: with the fallback's value if nobody brings another.
pub(crate) struct MustCall<F, G> {
    pub(crate) closure: F,
    pub(crate) fallback: G,
}

impl<T, F, G> Task<T> for MustCall<F, G>
where
    F: FnOnce(T) + Send + 'static,
    G: FnOnce() -> T + Send + 'static,
{
    #[inline]
    fn finish(self, value: Option<T>) {
        // The fallback outlives the call: if it were dropped first and panicked, the closure would go uncalled.
        let MustCall { closure, fallback } = self;
        match value {
            Some(value) => {
                closure(value);
                drop(fallback);
            }
            None if cfg!(callback_slot_mutation = "fallback_forgotten") => {}
            None => unwind::contain(move || closure(fallback())),
        }
    }
}
