//! Everything a program can reach, real and in the model; the forms have a file each.

use callback_slot::{CallOutcome, Callback, CompleteError, InPlaceSlot, OptionCell};

use crate::ledger::{Planned, Token};
use crate::make::{self, NewCallback};
use crate::model::{Model, Place, Task};
use crate::op::{How, Kind, Op};
use crate::planned;
use crate::replies::Replies;
use crate::shared::Handles;
use crate::slots;

/// A callback in nobody's slot, and what the model calls it.
pub(crate) struct Held {
    pub(crate) callback: Callback<Token>,
    pub(crate) task: Task,
}

pub(crate) struct World {
    pub(crate) model: Model,
    pub(crate) hand: Vec<Held>,
    pub(crate) shared: Handles,
    pub(crate) roomy: (InPlaceSlot<Token, 8>, Place),
    pub(crate) narrow: (InPlaceSlot<Token, 1>, Place),
    pub(crate) boxes: (OptionCell<Box<Token>>, Option<u32>),
    pub(crate) callbacks: (OptionCell<Callback<Token>>, Option<Task>),
    pub(crate) replies: Replies,
    /// The next number to complete with.
    number: u32,
}

impl World {
    pub(crate) fn new() -> Self {
        slots::clear();
        World {
            model: Model::new(),
            hand: Vec::new(),
            shared: Handles::default(),
            roomy: (InPlaceSlot::empty(), Place::Empty),
            narrow: (InPlaceSlot::empty(), Place::Empty),
            boxes: (OptionCell::empty(), None),
            callbacks: (OptionCell::empty(), None),
            replies: Replies::default(),
            number: 0,
        }
    }

    pub(crate) fn step(&mut self, op: Op) {
        match op {
            Op::Make(kind) => self.make(kind),
            Op::Call(at, how) => self.call(at, how),
            Op::Drop(at) => self.drop_callback(at),
            Op::SlotArm(slot, at) => self.slot_arm(slot % 2, at),
            Op::SlotTake(slot) => self.slot_take(slot % 2),
            Op::SlotComplete(slot, how) => self.slot_complete(slot % 2, how),
            Op::SlotRearm(slot, at) => self.slot_rearm(slot % 2, at),
            Op::SlotReset(slot) => self.slot_reset(slot % 2),
            Op::SlotReplace(slot) => self.slot_replace(slot % 2),
            Op::SharedNew(kind) => self.shared_new(kind),
            Op::SharedFrom(at) => self.shared_from(at),
            Op::SharedClone(at) => self.shared_clone(at),
            Op::SharedComplete(at, how) => self.shared_complete(at, how),
            Op::SharedDrop(at) => self.shared_drop(at),
            Op::InPlaceNew(slot, kind) => self.in_place_new(slot, kind),
            Op::InPlaceFrom(slot, at) => self.in_place_from(slot, at),
            Op::InPlaceRearm(slot, kind) => self.in_place_rearm(slot, kind),
            Op::InPlaceReset(slot) => self.in_place_reset(slot),
            Op::InPlaceComplete(slot, how) => self.in_place_complete(slot, how),
            Op::InPlaceMove(slot) => self.in_place_move(slot),
            Op::BoxCell(what) => self.box_cell(what),
            Op::CallbackCell(what, at) => self.callback_cell(what, at),
            Op::ReplyNew => self.reply_new(),
            Op::Reply(at, what) => self.reply(at, what),
        }
    }

    pub(crate) fn check(&self) {
        self.model.check();
    }

    /// Lets everything go; then nothing may be left, and no must-call uncalled.
    pub(crate) fn close(mut self) {
        while !self.hand.is_empty() {
            self.drop_callback(0);
        }
        for slot in 0..2 {
            self.slot_replace(slot);
            self.in_place_reset(slot);
        }
        while self.shared.len() > 0 {
            self.shared_drop(0);
        }
        self.close_cells();
        self.close_replies();
        self.check();
    }

    /// One more number, different from all before.
    pub(crate) fn number(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    /// A callback out of the hand.
    pub(crate) fn pick(&mut self, at: usize) -> Option<Held> {
        (!self.hand.is_empty()).then(|| self.hand.swap_remove(at % self.hand.len()))
    }

    fn make(&mut self, kind: Kind) {
        let (id, task) = self.model.open(kind);
        self.hand.push(Held { callback: make::make(NewCallback, id, kind), task });
    }

    fn call(&mut self, at: usize, how: How) {
        let Some(Held { callback, task }) = self.pick(at) else { return };
        let number = self.number();
        let panics = self.model.called(task, number);
        let value = Token::new(number);
        let panicked = match how {
            How::Catching => !callback.call_catching(value).is_returned(),
            _ => planned(|| callback.call(value)).is_err(),
        };
        assert_eq!(panicked, panics);
    }

    fn drop_callback(&mut self, at: usize) {
        if let Some(Held { callback, task }) = self.pick(at) {
            self.model.dropped(task);
            drop(callback);
        }
    }

    /// What completing a slot has to do, in the model. Says whether it panics.
    pub(crate) fn expect(&mut self, task: Option<Task>, number: u32, how: How) -> bool {
        match (task, how) {
            (None, _) => false,
            (Some(task), How::BadBuilder) => {
                self.model.dropped(task);
                true
            }
            (Some(task), _) => self.model.called(task, number),
        }
    }
}

/// Completes a slot of any form, and compares with the model: `before` it was so, and it `panics` or not.
macro_rules! complete {
    ($slot:expr, $how:expr, $number:expr, $before:expr, $panics:expr) => {{
        use crate::world::{caught, verdict};
        let number = $number;
        let done = match $how {
            How::Complete => {
                verdict(planned(|| $slot.complete(Token::new(number))), |value| value.number() == number)
            }
            How::With => verdict(planned(|| $slot.complete_with(|| Token::new(number))), |build| {
                build().number() == number
            }),
            How::Catching => {
                caught($slot.complete_catching(Token::new(number)), |value| value.number() == number)
            }
            How::BadBuilder => verdict(
                planned(|| $slot.complete_with(|| -> Token { std::panic::panic_any(Planned) })),
                |_| true,
            ),
        };
        assert_eq!(done, crate::world::expected($before, $panics));
    }};
}
pub(crate) use complete;

/// How completing ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Done {
    Won,
    Panicked,
    NeverArmed,
    AlreadyCompleted,
}

pub(crate) fn expected(before: Place, panics: bool) -> Done {
    match before {
        Place::Armed(_) if panics => Done::Panicked,
        Place::Armed(_) => Done::Won,
        Place::Empty => Done::NeverArmed,
        Place::Done => Done::AlreadyCompleted,
    }
}

/// The loser gets back what it brought; `same` looks at that.
pub(crate) fn verdict<V>(
    result: Result<Result<(), CompleteError<V>>, Planned>,
    same: impl FnOnce(V) -> bool,
) -> Done {
    let error = match result {
        Err(Planned) => return Done::Panicked,
        Ok(Ok(())) => return Done::Won,
        Ok(Err(error)) => error,
    };
    let done = match error {
        CompleteError::NeverArmed(_) => Done::NeverArmed,
        CompleteError::AlreadyCompleted(_) => Done::AlreadyCompleted,
    };
    assert!(same(error.into_inner()));
    done
}

pub(crate) fn caught<V>(result: Result<CallOutcome, CompleteError<V>>, same: impl FnOnce(V) -> bool) -> Done {
    match result {
        Ok(CallOutcome::Panicked(payload)) if payload.is::<Planned>() => Done::Panicked,
        Ok(CallOutcome::Panicked(_)) => panic!("a panic that nobody planned"),
        Ok(CallOutcome::Returned) => Done::Won,
        Err(error) => verdict(Ok(Err(error)), same),
    }
}
