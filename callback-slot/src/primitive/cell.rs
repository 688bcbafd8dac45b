//! Plain memory that threads hand to each other: `core`'s cell, or loom's, which reports unordered accesses.

#[cfg(callback_slot_loom)]
pub(crate) use loom::cell::UnsafeCell;

/// `core`'s cell behind the one operation of loom's that the crate uses.
#[cfg(not(callback_slot_loom))]
#[repr(transparent)]
pub(crate) struct UnsafeCell<V>(core::cell::UnsafeCell<V>);

#[cfg(not(callback_slot_loom))]
impl<V> UnsafeCell<V> {
    pub(crate) const fn new(value: V) -> Self {
        UnsafeCell(core::cell::UnsafeCell::new(value))
    }

    /// Hands `access` a pointer to the value. What `access` does with it must not overlap with another access.
    #[inline]
    pub(crate) fn with_mut<R>(&self, access: impl FnOnce(*mut V) -> R) -> R {
        access(self.0.get())
    }
}
