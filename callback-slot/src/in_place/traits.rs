//! What one expects of `InPlaceSlot` besides its own operations: a default, conversions, a debug form.

use core::fmt;

use super::InPlaceSlot;
use crate::callback::Callback;

/// An empty slot.
impl<T, const WORDS: usize> Default for InPlaceSlot<T, WORDS> {
    fn default() -> Self {
        Self::empty()
    }
}

/// A slot that is armed with the callback, which stays where it is: its word is all that is stored.
impl<T, const WORDS: usize> From<Callback<T>> for InPlaceSlot<T, WORDS> {
    #[inline]
    fn from(callback: Callback<T>) -> Self {
        let mut slot = Self::empty();
        slot.set(callback.into_word());
        slot
    }
}

/// Shows the state.
impl<T, const WORDS: usize> fmt::Debug for InPlaceSlot<T, WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InPlaceSlot({:?})", self.cell.state())
    }
}
