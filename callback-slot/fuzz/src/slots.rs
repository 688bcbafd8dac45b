//! The plain slots: two of them, where callbacks that re-enter can find them.

use std::cell::RefCell;

use callback_slot::CallbackSlot;

use crate::ledger::{Planned, Token};
use crate::model::{Place, REENTRY};
use crate::op::How;
use crate::planned;
use crate::world::{complete, Held, World};

thread_local! {
    /// Borrowed shared while user code runs, which completes them too; alone only where none runs.
    static SLOTS: RefCell<[CallbackSlot<Token>; 2]> = const { RefCell::new([const { CallbackSlot::empty() }; 2]) };
}

pub(crate) fn clear() {
    SLOTS.set([CallbackSlot::empty(), CallbackSlot::empty()]);
}

/// What a callback does that re-enters: it may be called from within this very slot.
pub(crate) fn reenter(slot: usize) {
    SLOTS.with_borrow(|slots| drop(slots[slot].complete(Token::new(REENTRY))));
}

impl World {
    pub(crate) fn slot_arm(&mut self, slot: usize, at: usize) {
        let Some(Held { callback, task }) = self.pick(at) else { return };
        let refused = SLOTS.with_borrow(|slots| slots[slot].arm(callback)).err();
        match (refused, self.model.slots[slot]) {
            (None, Place::Empty) => self.model.slots[slot] = Place::Armed(task),
            (Some(callback), Place::Armed(_) | Place::Done) => self.hand.push(Held { callback, task }),
            (refused, place) => panic!("arming a slot that is {place:?} gave {refused:?}"),
        }
    }

    pub(crate) fn slot_take(&mut self, slot: usize) {
        let taken = SLOTS.with_borrow(|slots| slots[slot].take());
        let task = self.model.slots[slot].take();
        self.hold(taken, task);
    }

    pub(crate) fn slot_complete(&mut self, slot: usize, how: How) {
        let (number, before) = (self.number(), self.model.slots[slot]);
        let task = self.model.slots[slot].take();
        let panics = self.expect(task, number, how);
        SLOTS.with_borrow(|slots| {
            assert_eq!(slots[slot].is_armed(), before.is_armed());
            complete!(slots[slot], how, number, before, panics);
            assert!(!slots[slot].is_armed());
        });
    }

    pub(crate) fn slot_rearm(&mut self, slot: usize, at: usize) {
        let Some(Held { callback, task }) = self.pick(at) else { return };
        let old = SLOTS.with_borrow_mut(|slots| slots[slot].rearm(callback));
        let task = self.model.slots[slot].set(Place::Armed(task));
        self.hold(old, task);
    }

    pub(crate) fn slot_reset(&mut self, slot: usize) {
        let old = SLOTS.with_borrow_mut(|slots| slots[slot].reset());
        let task = self.model.slots[slot].set(Place::Empty);
        self.hold(old, task);
    }

    /// Drops the slot, armed or not, and puts a new one there.
    pub(crate) fn slot_replace(&mut self, slot: usize) {
        let old = SLOTS.with_borrow_mut(|slots| std::mem::take(&mut slots[slot]));
        if let Some(task) = self.model.slots[slot].set(Place::Empty) {
            self.model.dropped(task);
        }
        drop(old);
    }

    /// What came out of a slot goes into the hand, if the model says so too.
    pub(crate) fn hold(
        &mut self,
        callback: Option<callback_slot::Callback<Token>>,
        task: Option<crate::model::Task>,
    ) {
        match (callback, task) {
            (Some(callback), Some(task)) => self.hand.push(Held { callback, task }),
            (None, None) => {}
            (callback, task) => panic!("{callback:?} came out where {task:?} was"),
        }
    }
}
