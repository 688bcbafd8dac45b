//! The place in the slot: how a task gets in, and how it is found there.

use core::marker::PhantomData;
use core::ptr::NonNull;

use super::InPlaceSlot;
use crate::primitive::Word;
use crate::raw::{self, Header};
use crate::task::Task;

/// The constant header of tasks that lie in a slot.
struct InPlace<T, K>(PhantomData<(T, K)>);

impl<T, K: Task<T>> InPlace<T, K> {
    const HEADER: *const Header<T> = &Header::new(Self::finish);

    /// # Safety
    ///
    /// A `K` lies at `place`, and this call alone may take it.
    unsafe fn finish(_: NonNull<()>, place: *mut (), value: Option<T>) {
        // SAFETY: by contract. From here on the storage holds nothing, so user code may do anything to its owner.
        let task = unsafe { place.cast::<K>().read() };
        task.finish(value);
    }
}

impl<T, const WORDS: usize> InPlaceSlot<T, WORDS> {
    #[inline]
    pub(super) fn store<K: Task<T>>(task: K) -> Self {
        let mut slot = Self::empty();
        slot.fill(task);
        slot
    }

    /// Arms a slot that is EMPTY.
    #[inline]
    pub(super) fn fill<K: Task<T>>(&mut self, task: K) {
        let word = if Self::fits::<K>() {
            // SAFETY: it fits, and nobody else has access.
            unsafe { self.place().cast::<K>().write(task) };
            // SAFETY: a pointer to a constant is not null.
            unsafe { raw::word_of(InPlace::<T, K>::HEADER) }
        } else {
            raw::store(task)
        };
        self.set(word);
    }

    #[inline]
    pub(super) fn set(&mut self, word: Word) {
        let old = self.cell.rearm(word);
        debug_assert!(old.is_none(), "only an empty slot is filled");
    }

    /// Where the task lies.
    #[inline]
    pub(super) fn place(&self) -> *mut () {
        self.storage.with_mut(|storage| storage.cast())
    }
}
