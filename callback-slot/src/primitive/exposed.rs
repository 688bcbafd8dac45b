//! What ships: the address of a callback as an integer, in crossbeam's `AtomicCell`.
//!
//! `AtomicCell` moves its value through an integer atomic, and a pointer that went through an integer has lost its
//! provenance: it may no longer be dereferenced. So the word *is* an integer here. [`Word::new`] exposes the pointer's
//! provenance before it gives up the pointer, and [`Word::pointer`] asks for an exposed provenance back.
//!
//! Orderings are `AtomicCell`'s documented ones: loads acquire, stores release, read-modify-writes do both. That is at
//! least what each operation needs. `pointer.rs` holds exactly what each needs, and there loom checks it.

use core::num::NonZeroUsize;
use core::ptr::{self, NonNull};

use crossbeam_utils::atomic::AtomicCell;

/// The address of a callback whose provenance is exposed, or the sentinel. One word, with a niche for `None`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Word(NonZeroUsize);

impl Word {
    /// A word that is no address: nothing that a word points to is aligned to a single byte.
    pub(crate) const SENTINEL: Word = Word(NonZeroUsize::MIN);

    /// Gives up `pointer` and keeps its address.
    #[inline]
    pub(crate) fn new(pointer: NonNull<()>) -> Word {
        let address = pointer.as_ptr().expose_provenance();
        // SAFETY: the address of a `NonNull` is not zero.
        Word(unsafe { NonZeroUsize::new_unchecked(address) })
    }

    /// The pointer that [`Word::new`] was given; of the sentinel, one that must not be dereferenced.
    #[inline]
    pub(crate) fn pointer(self) -> NonNull<()> {
        let pointer = ptr::with_exposed_provenance_mut(self.0.get());
        // SAFETY: the address is not zero, so the pointer is not null.
        unsafe { NonNull::new_unchecked(pointer) }
    }
}

/// An atomic `Option<Word>`.
#[repr(transparent)]
pub(crate) struct WordCell(AtomicCell<Option<Word>>);

impl WordCell {
    pub(crate) const fn new(word: Option<Word>) -> Self {
        WordCell(AtomicCell::new(word))
    }

    /// The word as it is about now. Orders nothing: good for a decision, not for following the pointer.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Word> {
        // ORDERING: Relaxed would do; `AtomicCell::load` is Acquire, which is the same instruction on x86.
        self.0.load()
    }

    /// Exchanges the word: sees everything before the old word was stored, shows everything before this call.
    #[inline]
    pub(crate) fn swap(&self, word: Option<Word>) -> Option<Word> {
        // ORDERING: AcqRel, as documented for `AtomicCell::swap`; pairs with `publish` and with other swaps.
        self.0.swap(word)
    }

    /// Stores `word` if the cell holds `None`, and shows everything before this call. Says whether it did.
    ///
    /// `None` is the only expected value there is, so the reuse of an address can never be taken for identity.
    #[inline]
    pub(crate) fn publish(&self, word: Word) -> bool {
        // ORDERING: Release on success and Relaxed on failure would do; `AtomicCell` uses AcqRel and Acquire.
        self.0.compare_exchange(None, Some(word)).is_ok()
    }

    /// The word, read by whoever is alone with the cell.
    #[inline]
    pub(crate) fn get(&mut self) -> Option<Word> {
        // ORDERING: none needed, `&mut self` means that nobody else has access.
        self.0.load()
    }

    /// Sets the word, by whoever is alone with the cell.
    #[inline]
    pub(crate) fn set(&mut self, word: Option<Word>) {
        // ORDERING: none needed, `&mut self` means that nobody else has access.
        self.0.store(word);
    }
}
