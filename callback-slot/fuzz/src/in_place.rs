//! Slots in place: one with room for small closures, one that has to send nearly all of them to the heap.

use callback_slot::InPlaceSlot;

use crate::ledger::{Planned, Token};
use crate::make::{self, Assign, Rearm};
use crate::model::Place;
use crate::op::{How, Kind};
use crate::planned;
use crate::world::{complete, Held, World};

/// Runs the same for whichever of the two slots is meant.
macro_rules! with {
    ($world:ident, $slot:expr, |$real:ident, $place:ident| $body:expr) => {
        if $slot % 2 == 0 {
            let ($real, $place) = &mut $world.roomy;
            $body
        } else {
            let ($real, $place) = &mut $world.narrow;
            $body
        }
    };
}

impl World {
    pub(crate) fn in_place_new(&mut self, slot: usize, kind: Kind) {
        let (id, task) = self.model.open(kind);
        // Assigning drops the old slot and so its callback.
        let old = with!(self, slot, |_real, place| place.set(Place::Armed(task)));
        if let Some(old) = old {
            self.model.dropped(old);
        }
        with!(self, slot, |real, _place| make::make(Assign(real), id, kind));
    }

    pub(crate) fn in_place_from(&mut self, slot: usize, at: usize) {
        let Some(Held { callback, task }) = self.pick(at) else { return };
        let old = with!(self, slot, |_real, place| place.set(Place::Armed(task)));
        if let Some(old) = old {
            self.model.dropped(old);
        }
        with!(self, slot, |real, _place| *real = InPlaceSlot::from(callback));
    }

    pub(crate) fn in_place_rearm(&mut self, slot: usize, kind: Kind) {
        let (id, task) = self.model.open(kind);
        let old = with!(self, slot, |_real, place| place.set(Place::Armed(task)));
        if let Some(old) = old {
            self.model.dropped(old);
        }
        with!(self, slot, |real, _place| make::make(Rearm(real), id, kind));
    }

    pub(crate) fn in_place_reset(&mut self, slot: usize) {
        let old = with!(self, slot, |_real, place| place.set(Place::Empty));
        if let Some(old) = old {
            self.model.dropped(old);
        }
        with!(self, slot, |real, _place| real.reset());
    }

    pub(crate) fn in_place_complete(&mut self, slot: usize, how: How) {
        let number = self.number();
        let before = with!(self, slot, |_real, place| *place);
        let task = with!(self, slot, |_real, place| place.take());
        let panics = self.expect(task, number, how);
        with!(self, slot, |real, _place| {
            assert_eq!(real.is_armed(), before.is_armed());
            complete!(real, how, number, before, panics);
            assert!(!real.is_armed());
        });
    }

    /// Moves the slot through another address, with its callback inside.
    pub(crate) fn in_place_move(&mut self, slot: usize) {
        with!(self, slot, |real, _place| {
            let elsewhere = Box::new(std::mem::take(real));
            assert!(!real.is_armed());
            *real = *elsewhere;
        });
    }
}
