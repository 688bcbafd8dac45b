//! Which owners are one word wide, and how each turns into a pointer and back.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;

use crate::callback::Callback;
use crate::primitive::Word;

mod sealed {
    use core::ptr::NonNull;

    /// Turns an owner into a pointer and back.
    pub trait IntoPointer: Sized {
        fn into_pointer(self) -> NonNull<()>;

        /// # Safety
        ///
        /// `pointer` comes from `into_pointer` of the same type, and is given up here.
        unsafe fn from_pointer(pointer: NonNull<()>) -> Self;
    }
}
use self::sealed::IntoPointer;

/// An owner that is one word wide: [`Box`], [`Arc`] (both of sized values) and [`Callback`].
///
/// Sealed: no other crate can implement it.
///
/// # Examples
///
/// ```
/// use callback_slot::{OneWord, OptionCell};
///
/// /// Puts `new` in, if there is nothing yet.
/// fn offer<P: OneWord>(cell: &OptionCell<P>, new: P) -> bool {
///     cell.try_put(new).is_ok()
/// }
///
/// let cell = OptionCell::empty();
/// assert!(offer(&cell, Box::new(1)));
/// assert!(!offer(&cell, Box::new(2)));
/// ```
pub trait OneWord: IntoPointer {}

impl<V> OneWord for Box<V> {}
impl<V> OneWord for Arc<V> {}
impl<T> OneWord for Callback<T> {}

impl<V> IntoPointer for Box<V> {
    #[inline]
    fn into_pointer(self) -> NonNull<()> {
        // SAFETY: a pointer out of a box is not null.
        unsafe { NonNull::new_unchecked(Box::into_raw(self).cast()) }
    }

    #[inline]
    unsafe fn from_pointer(pointer: NonNull<()>) -> Self {
        // SAFETY: by contract the pointer came out of such a box.
        unsafe { Box::from_raw(pointer.cast().as_ptr()) }
    }
}

impl<V> IntoPointer for Arc<V> {
    #[inline]
    fn into_pointer(self) -> NonNull<()> {
        // SAFETY: a pointer out of an `Arc` is not null.
        unsafe { NonNull::new_unchecked(Arc::into_raw(self).cast_mut().cast()) }
    }

    #[inline]
    unsafe fn from_pointer(pointer: NonNull<()>) -> Self {
        // SAFETY: by contract the pointer came out of such an `Arc`.
        unsafe { Arc::from_raw(pointer.cast().as_ptr()) }
    }
}

impl<T> IntoPointer for Callback<T> {
    #[inline]
    fn into_pointer(self) -> NonNull<()> {
        self.into_word().pointer()
    }

    #[inline]
    unsafe fn from_pointer(pointer: NonNull<()>) -> Self {
        // SAFETY: by contract the pointer is that of a callback's word.
        unsafe { Callback::from_word(Word::new(pointer)) }
    }
}

/// The owner behind a word that was taken out of a cell.
///
/// # Safety
///
/// `word` was made of the pointer of a `P`, and is given up here.
#[inline]
pub(super) unsafe fn own<P: OneWord>(word: Word) -> P {
    // SAFETY: the same contract.
    unsafe { P::from_pointer(word.pointer()) }
}
