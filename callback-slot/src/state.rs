//! The states of a slot, and who may take it from one to the next.
//!
//! | state | the cell holds | left by | who may touch the callback |
//! |---|---|---|---|
//! | EMPTY | `None` | [`SlotCell::arm`] | there is none |
//! | ARMED | the callback's word | [`SlotCell::claim`] | nobody |
//! | DONE | the sentinel, never followed | `&mut` only | the one whose swap found the word |
//!
//! Under `&self` a slot moves from top to bottom only. That is what makes each operation a bounded number of steps: once
//! a load has seen ARMED, a swap finds ARMED or DONE, never EMPTY, so nothing is ever undone or tried again.

use crate::complete::CompleteError;
use crate::primitive::{const_unless_loom, Word, WordCell};

/// The atomic word of a slot.
pub(crate) struct SlotCell(WordCell);

/// What came of the attempt to take the callback out of a slot.
#[must_use]
pub(crate) enum Claim {
    /// The callback is the caller's, and nobody else's.
    Won(Word),
    /// The slot was EMPTY, and still is.
    NeverArmed,
    /// Somebody else took the callback.
    AlreadyCompleted,
}

impl Claim {
    /// The word, or what the loser is told.
    #[inline]
    pub(crate) fn into_result(self) -> Result<Word, CompleteError<()>> {
        match self {
            Claim::Won(word) => Ok(word),
            Claim::NeverArmed => Err(CompleteError::NeverArmed(())),
            Claim::AlreadyCompleted => Err(CompleteError::AlreadyCompleted(())),
        }
    }
}

/// The state of a slot at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Empty,
    Armed,
    Done,
}

impl SlotCell {
    const_unless_loom! {
        pub(crate) const fn empty() -> Self {
            SlotCell(WordCell::new(None))
        }
    }

    pub(crate) fn armed(word: Word) -> Self {
        SlotCell(WordCell::new(Some(word)))
    }

    /// EMPTY → ARMED, and says whether it was EMPTY. If not, `word` is still the caller's.
    #[inline]
    pub(crate) fn arm(&self, word: Word) -> bool {
        // ORDERING: `publish` releases the callback to the `claim` that will find it.
        self.0.publish(word)
    }

    /// ARMED → DONE, or nothing.
    #[inline]
    pub(crate) fn claim(&self) -> Claim {
        // A swap alone would close an EMPTY slot for the one who is about to arm it, so a load looks first.
        // ORDERING: the load decides and no more; the swap acquires what it takes.
        match self.0.peek() {
            None => Claim::NeverArmed,
            Some(word) if word == Word::SENTINEL => Claim::AlreadyCompleted,
            Some(seen) => self.claim_armed(seen),
        }
    }

    /// ARMED → DONE for a slot that is known not to be EMPTY: the swap alone.
    #[inline]
    pub(crate) fn claim_not_empty(&self) -> Claim {
        // ORDERING: `swap` acquires the callback from whoever armed the slot.
        match self.0.swap(Some(Word::SENTINEL)) {
            None => Claim::NeverArmed,
            Some(word) if word == Word::SENTINEL => Claim::AlreadyCompleted,
            Some(word) => Claim::Won(word),
        }
    }

    /// A plain load.
    #[inline]
    pub(crate) fn state(&self) -> State {
        // ORDERING: a hint, it may be outdated when the caller reads it.
        match self.0.peek() {
            None => State::Empty,
            Some(word) if word == Word::SENTINEL => State::Done,
            Some(_) => State::Armed,
        }
    }

    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.state() == State::Armed
    }

    /// Any state → EMPTY, by whoever is alone with the slot. Returns the callback if it was ARMED.
    #[inline]
    pub(crate) fn reset(&mut self) -> Option<Word> {
        let word = self.last();
        self.0.set(None);
        word
    }

    /// The callback if the slot is ARMED, for whoever is about to end the slot: the word still stands there.
    #[inline]
    pub(crate) fn last(&mut self) -> Option<Word> {
        self.0.get().filter(|&word| word != Word::SENTINEL)
    }

    /// EMPTY → ARMED, by whoever is alone with the slot. Resets it first: no callback may be overwritten.
    #[inline]
    pub(crate) fn rearm(&mut self, word: Word) -> Option<Word> {
        let old = self.reset();
        self.0.set(Some(word));
        old
    }

    #[inline]
    fn claim_armed(&self, seen: Word) -> Claim {
        if cfg!(callback_slot_mutation = "take_is_load_then_store") {
            let _ = self.0.swap(Some(Word::SENTINEL));
            return Claim::Won(seen);
        }
        self.claim_not_empty()
    }
}
