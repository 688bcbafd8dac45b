//! A cell for any one-word owner: an atomic `Option<Box<V>>`, `Option<Arc<V>>` or `Option<Callback<T>>`.

mod one_word;
mod traits;

use core::marker::PhantomData;

use crate::primitive::{const_unless_loom, Word, WordCell};

use self::one_word::own;
pub use self::one_word::OneWord;

/// An atomic `Option<P>` for an owner that is one word wide, without locks.
///
/// What crossbeam's `AtomicOption` was before it was removed, with the orderings that it lacked. Values go in and out by
/// `&self`, as often as one likes; each is owned by the cell or by exactly one of its users. For a callback that is to
/// be completed once, use a [`CallbackSlot`](crate::CallbackSlot), which remembers that it was.
///
/// Every operation is wait-free.
///
/// # Ordering
///
/// Everything that happened before a value was put in is visible to whoever takes it out, or drops the cell.
///
/// # Re-entrancy and panics
///
/// What an operation replaces or refuses is handed to the caller, so no destructor runs inside: it may use the same cell. A cell
/// that is dropped drops its value; if that panics, the cell is gone all the same.
///
/// # Examples
///
/// ```
/// use callback_slot::OptionCell;
///
/// static LATEST: OptionCell<Box<String>> = OptionCell::empty();
///
/// assert!(LATEST.put(Box::new("one".into())).is_none());
/// assert_eq!(*LATEST.put(Box::new("two".into())).unwrap(), "one");
/// assert_eq!(*LATEST.take().unwrap(), "two");
/// assert!(LATEST.take().is_none());
/// ```
///
/// The cell moves values between threads, so sharing it asks for `P: Send`:
///
/// ```compile_fail,E0277
/// use callback_slot::OptionCell;
/// use std::rc::Rc;
///
/// let cell = OptionCell::new(Box::new(Rc::new(0)));
/// std::thread::scope(|scope| scope.spawn(|| cell.take()).join());
/// ```
///
/// An `Arc` of a value that is not `Sync` is not `Send` either:
///
/// ```compile_fail,E0277
/// # use callback_slot::OptionCell;
/// use std::{cell::Cell, sync::Arc};
///
/// static CELL: OptionCell<Arc<Cell<u32>>> = OptionCell::empty();
/// ```
///
/// `P` may not be exchanged for a shorter lifetime, which could then be put in, nor for a longer one, which would come out:
///
/// ```compile_fail
/// # use callback_slot::OptionCell;
/// fn shorter<'a>(cell: &'a OptionCell<Box<&'static str>>) -> &'a OptionCell<Box<&'a str>> { cell }
/// ```
///
/// ```compile_fail
/// # use callback_slot::OptionCell;
/// fn longer<'a>(cell: &'a OptionCell<Box<&'a str>>) -> &'a OptionCell<Box<&'static str>> { cell }
/// ```
#[repr(transparent)]
pub struct OptionCell<P: OneWord> {
    cell: WordCell,
    // Values go in and out through `&self`, so invariant. It owns a `P`, and its own `Drop` says so.
    marker: PhantomData<fn(P) -> P>,
}

// SAFETY: a cell is sent with the value that it owns.
unsafe impl<P: OneWord + Send> Send for OptionCell<P> {}
// SAFETY: through `&self` values are moved from thread to thread, never shared between them.
unsafe impl<P: OneWord + Send> Sync for OptionCell<P> {}

impl<P: OneWord> OptionCell<P> {
    const_unless_loom! {
        /// A cell without a value. Not `const` under loom.
        ///
        /// # Examples
        ///
        /// ```
        /// # use callback_slot::OptionCell;
        /// assert!(!OptionCell::<Box<u32>>::empty().is_some());
        /// ```
        #[must_use]
        pub const fn empty() -> Self {
            OptionCell { cell: WordCell::new(None), marker: PhantomData }
        }
    }

    /// A cell that holds `value`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::OptionCell;
    /// assert_eq!(OptionCell::new(Box::new(7)).into_inner(), Some(Box::new(7)));
    /// ```
    #[inline]
    pub fn new(value: P) -> Self {
        OptionCell { cell: WordCell::new(Some(Word::new(value.into_pointer()))), marker: PhantomData }
    }

    /// Exchanges what the cell holds.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::OptionCell;
    /// let cell = OptionCell::new(Box::new(1));
    /// assert_eq!(cell.swap(Some(Box::new(2))), Some(Box::new(1)));
    /// assert_eq!(cell.swap(None), Some(Box::new(2)));
    /// ```
    #[inline]
    pub fn swap(&self, value: Option<P>) -> Option<P> {
        // ORDERING: acquires the old value, which the caller reads or drops; releases the new one.
        let old = self.cell.swap(value.map(|value| Word::new(value.into_pointer())));
        // SAFETY: the cell owned the value behind the word, and the swap gave it to this call alone.
        old.map(|word| unsafe { own(word) })
    }

    /// Takes the value out.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::OptionCell;
    /// let cell = OptionCell::new(Box::new(1));
    /// assert_eq!(cell.take(), Some(Box::new(1)));
    /// assert_eq!(cell.take(), None);
    /// ```
    #[inline]
    pub fn take(&self) -> Option<P> {
        self.swap(None)
    }

    /// Puts a value in and returns the one it replaces.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::OptionCell;
    /// let cell = OptionCell::new(Box::new(1));
    /// assert_eq!(cell.put(Box::new(2)), Some(Box::new(1)));
    /// ```
    #[inline]
    pub fn put(&self, value: P) -> Option<P> {
        self.swap(Some(value))
    }

    /// Puts a value in if there is none: one compare-exchange.
    ///
    /// # Errors
    ///
    /// Gives the value back if the cell holds one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::OptionCell;
    /// let cell = OptionCell::empty();
    /// assert_eq!(cell.try_put(Box::new(1)), Ok(()));
    /// assert_eq!(cell.try_put(Box::new(2)), Err(Box::new(2)));
    /// ```
    #[inline]
    pub fn try_put(&self, value: P) -> Result<(), P> {
        let word = Word::new(value.into_pointer());
        // ORDERING: releases the value to whoever takes it.
        if self.cell.publish(word) {
            Ok(())
        } else {
            // SAFETY: the cell did not take the word that was given up above.
            Err(unsafe { own(word) })
        }
    }

    /// Whether there is a value. A plain load and a hint: the answer may be outdated, and orders nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::OptionCell;
    /// assert!(OptionCell::new(Box::new(1)).is_some());
    /// ```
    #[inline]
    #[must_use]
    pub fn is_some(&self) -> bool {
        // ORDERING: a hint.
        self.cell.peek().is_some()
    }

    /// The value, by whoever owns the cell.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::OptionCell;
    /// assert_eq!(OptionCell::<Box<u32>>::empty().into_inner(), None);
    /// ```
    #[inline]
    pub fn into_inner(mut self) -> Option<P> {
        self.remove()
    }

    #[inline]
    fn remove(&mut self) -> Option<P> {
        let word = self.cell.get();
        self.cell.set(None);
        // SAFETY: the cell owned the value behind the word, and no longer holds the word.
        word.map(|word| unsafe { own(word) })
    }
}

impl<P: OneWord> Drop for OptionCell<P> {
    #[inline]
    fn drop(&mut self) {
        drop(self.remove());
    }
}
