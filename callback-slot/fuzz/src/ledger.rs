//! What really happened: written by the closures and destructors themselves, and compared with the model's book.

use std::cell::{Cell, RefCell};

/// The payload of a panic that is part of the program.
pub(crate) struct Planned;

/// What happened to one callback. All that are zero-sized share the first record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) calls: u32,
    /// The sum of the numbers it was called with.
    pub(crate) numbers: u32,
    pub(crate) fallbacks: u32,
    /// How many of its captured values were dropped.
    pub(crate) drops: u32,
}

thread_local! {
    static RECORDS: RefCell<Vec<Record>> = const { RefCell::new(Vec::new()) };
    static LIVE_TOKENS: Cell<usize> = const { Cell::new(0) };
    static WAKES: Cell<usize> = const { Cell::new(0) };
}

/// Forgets all, for the next program.
pub(crate) fn clear() {
    RECORDS.set(vec![Record::default()]);
    LIVE_TOKENS.set(0);
    WAKES.set(0);
}

/// A record for one more callback.
pub(crate) fn open() -> usize {
    RECORDS.with_borrow_mut(|records| {
        records.push(Record::default());
        records.len() - 1
    })
}

pub(crate) fn note(id: usize, change: impl FnOnce(&mut Record)) {
    RECORDS.with_borrow_mut(|records| change(&mut records[id]));
}

pub(crate) fn records() -> Vec<Record> {
    RECORDS.with_borrow(Clone::clone)
}

pub(crate) fn live_tokens() -> usize {
    LIVE_TOKENS.get()
}

pub(crate) fn wakes() -> usize {
    WAKES.get()
}

pub(crate) fn wake() {
    WAKES.set(WAKES.get() + 1);
}

/// What callbacks are called with: a number in memory of its own, counted while it lives.
#[derive(Debug)]
pub(crate) struct Token(Box<u32>);

impl Token {
    pub(crate) fn new(number: u32) -> Self {
        LIVE_TOKENS.set(LIVE_TOKENS.get() + 1);
        Token(Box::new(number))
    }

    pub(crate) fn number(&self) -> u32 {
        *self.0
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        LIVE_TOKENS.set(LIVE_TOKENS.get() - 1);
    }
}
