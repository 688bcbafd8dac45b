//! The plain model: who owns which callback, and what each has done by now.

use callback_slot::fallback_panics;

use crate::ledger::{self, Record};
use crate::op::{Kind, Size};

/// The number that fallbacks give, and that re-entering callbacks complete with.
pub(crate) const FALLBACK: u32 = 1_000;
pub(crate) const REENTRY: u32 = 2_000;

/// What a callback stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    Closure {
        id: usize,
        kind: Kind,
    },
    /// The reply with this number.
    Reply(usize),
}

/// What a slot holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Empty,
    Armed(Task),
    Done,
}

impl Place {
    /// ARMED → DONE.
    pub(crate) fn take(&mut self) -> Option<Task> {
        match *self {
            Place::Armed(task) => {
                *self = Place::Done;
                Some(task)
            }
            _ => None,
        }
    }

    /// Any state to another one.
    pub(crate) fn set(&mut self, new: Place) -> Option<Task> {
        let old = self.take();
        *self = new;
        old
    }

    pub(crate) fn is_armed(self) -> bool {
        matches!(self, Place::Armed(_))
    }
}

/// What is known of a reply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) is_rung: bool,
    pub(crate) has_value: bool,
    /// A waker of ours waits in it.
    pub(crate) waker: bool,
    pub(crate) is_gone: bool,
}

/// The model's book.
pub(crate) struct Model {
    records: Vec<Record>,
    pub(crate) slots: [Place; 2],
    pub(crate) answers: Vec<Answer>,
    /// Values that lie in cells.
    pub(crate) in_cells: usize,
    wakes: usize,
    fallback_panics: usize,
}

impl Model {
    pub(crate) fn new() -> Self {
        Model {
            records: vec![Record::default()],
            slots: [Place::Empty; 2],
            answers: Vec::new(),
            in_cells: 0,
            wakes: 0,
            fallback_panics: fallback_panics(),
        }
    }

    /// A callback comes into being.
    pub(crate) fn open(&mut self, kind: Kind) -> (usize, Task) {
        let id = if kind.size == Size::Zero { 0 } else { ledger::open() };
        self.records.resize(self.records.len().max(id + 1), Record::default());
        (id, Task::Closure { id, kind })
    }

    /// It is called. Says whether that panics.
    pub(crate) fn called(&mut self, task: Task, number: u32) -> bool {
        let (id, kind) = match task {
            Task::Closure { id, kind } => (id, kind),
            Task::Reply(reply) => {
                self.rung(reply, true);
                return false;
            }
        };
        let record = &mut self.records[id];
        record.calls += 1;
        record.numbers += number;
        record.drops += kind.captures();
        let panics = kind.reenters.is_some_and(|slot| match self.slots[slot].take() {
            Some(task) => self.called(task, REENTRY),
            None => false,
        });
        panics || kind.panics
    }

    /// It is dropped uncalled. Never panics.
    pub(crate) fn dropped(&mut self, task: Task) {
        let (id, kind) = match task {
            Task::Closure { id, kind } => (id, kind),
            Task::Reply(reply) => return self.rung(reply, false),
        };
        let record = &mut self.records[id];
        if !kind.must {
            record.drops += 1;
            return;
        }
        record.fallbacks += 1;
        if kind.fallback_panics {
            record.drops += kind.captures();
            self.fallback_panics += 1;
        } else if self.called(task, FALLBACK) {
            self.fallback_panics += 1;
        }
    }

    fn rung(&mut self, reply: usize, with_value: bool) {
        let answer = &mut self.answers[reply];
        answer.is_rung = true;
        answer.has_value = with_value && !answer.is_gone;
        self.wakes += usize::from(std::mem::take(&mut answer.waker));
    }

    /// Compares the books.
    pub(crate) fn check(&self) {
        assert_eq!(ledger::records(), self.records);
        let values = self.answers.iter().filter(|answer| answer.has_value).count();
        assert_eq!(ledger::live_tokens(), values + self.in_cells);
        assert_eq!(ledger::wakes(), self.wakes);
        assert_eq!(fallback_panics(), self.fallback_panics);
    }
}
