//! What one expects of `CallbackSlot` besides its own operations: a default, conversions, a debug form.

use core::fmt;
use core::marker::PhantomData;

use super::CallbackSlot;
use crate::callback::Callback;
use crate::state::SlotCell;

/// An empty slot.
impl<T> Default for CallbackSlot<T> {
    fn default() -> Self {
        Self::empty()
    }
}

/// A slot that is armed with the callback.
impl<T> From<Callback<T>> for CallbackSlot<T> {
    #[inline]
    fn from(callback: Callback<T>) -> Self {
        CallbackSlot { cell: SlotCell::armed(callback.into_word()), marker: PhantomData }
    }
}

/// Shows the state.
impl<T> fmt::Debug for CallbackSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallbackSlot({:?})", self.cell.state())
    }
}
