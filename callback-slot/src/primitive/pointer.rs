//! The stand-in for `exposed.rs`: the same operations over an atomic pointer, `core`'s or loom's.
//!
//! Two builds use it. Under `callback_slot_strict_provenance` no pointer is ever turned into an integer, so Miri checks
//! all the rest of the crate in its strictest mode. Under `callback_slot_loom` loom explores every interleaving; it
//! cannot see into `AtomicCell`. Each ordering is the weakest that the derivation in `docs/soundness.md` allows; the
//! mutations weaken them further, one at a time, and each must then fail a named test.

use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

#[cfg(not(callback_slot_loom))]
use core::sync::atomic::AtomicPtr;
#[cfg(callback_slot_loom)]
use loom::sync::atomic::AtomicPtr;

use super::{const_unless_loom, ordering};

/// The pointer to a callback, or the sentinel. One word, with a niche for `None`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Word(NonNull<()>);

// SAFETY: a word is only an address; whoever follows it has to say why that is sound.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// A word that is no address: nothing that a word points to is aligned to a single byte.
    pub(crate) const SENTINEL: Word = Word(NonNull::<u8>::dangling().cast());

    /// Keeps `pointer`.
    #[inline]
    pub(crate) fn new(pointer: NonNull<()>) -> Word {
        Word(pointer)
    }

    /// The pointer that [`Word::new`] was given; of the sentinel, one that must not be dereferenced.
    #[inline]
    pub(crate) fn pointer(self) -> NonNull<()> {
        self.0
    }

    const fn from_raw(raw: *mut ()) -> Option<Word> {
        match NonNull::new(raw) {
            Some(pointer) => Some(Word(pointer)),
            None => None,
        }
    }

    const fn into_raw(word: Option<Word>) -> *mut () {
        match word {
            Some(word) => word.0.as_ptr(),
            None => ptr::null_mut(),
        }
    }
}

/// An atomic `Option<Word>`.
pub(crate) struct WordCell(AtomicPtr<()>);

impl WordCell {
    const_unless_loom! {
        pub(crate) const fn new(word: Option<Word>) -> Self {
            WordCell(AtomicPtr::new(Word::into_raw(word)))
        }
    }

    /// The word as it is about now. Orders nothing: good for a decision, not for following the pointer.
    pub(crate) fn peek(&self) -> Option<Word> {
        // ORDERING: Relaxed, the caller only asks which state the cell is in.
        Word::from_raw(self.0.load(Ordering::Relaxed))
    }

    /// Exchanges the word: sees everything before the old word was stored, shows everything before this call.
    pub(crate) fn swap(&self, word: Option<Word>) -> Option<Word> {
        // ORDERING: Acquire, pairs with `publish` and `swap`: the callback behind the old word is read or dropped.
        // Release, pairs with the next `swap`: what the new word stands for is read there.
        let ordering = if cfg!(callback_slot_mutation = "swap_without_acquire") {
            Ordering::Release
        } else if cfg!(callback_slot_mutation = "swap_without_release") {
            Ordering::Acquire
        } else {
            Ordering::AcqRel
        };
        Word::from_raw(self.0.swap(Word::into_raw(word), ordering))
    }

    /// Stores `word` if the cell holds `None`, and shows everything before this call. Says whether it did.
    ///
    /// `None` is the only expected value there is, so the reuse of an address can never be taken for identity.
    pub(crate) fn publish(&self, word: Word) -> bool {
        // ORDERING: Release on success, pairs with `swap`: the callback must be whole for whoever takes it. Relaxed on
        // failure: nothing is read through the word that was found.
        let success = ordering!(Release, "publish_relaxed" => Relaxed);
        let new = Word::into_raw(Some(word));
        self.0.compare_exchange(ptr::null_mut(), new, success, Ordering::Relaxed).is_ok()
    }

    /// The word, read by whoever is alone with the cell.
    pub(crate) fn get(&mut self) -> Option<Word> {
        #[cfg(not(callback_slot_loom))]
        let raw = *self.0.get_mut();
        // Under loom this also checks that the others' accesses happened before.
        #[cfg(callback_slot_loom)]
        let raw = self.0.with_mut(|raw| *raw);
        Word::from_raw(raw)
    }

    /// Sets the word, by whoever is alone with the cell.
    pub(crate) fn set(&mut self, word: Option<Word>) {
        #[cfg(not(callback_slot_loom))]
        let () = *self.0.get_mut() = Word::into_raw(word);
        #[cfg(callback_slot_loom)]
        self.0.with_mut(|raw| *raw = Word::into_raw(word));
    }
}
