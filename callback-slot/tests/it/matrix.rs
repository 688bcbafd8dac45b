//! The product of actions: whatever two holders do at the same time, one of those who empty the slot wins.
//!
//! The names start with `race_`, so that the many seeds of Miri can pick them.

use crate::support::{together, Count, ROUNDS};
use callback_slot::{Callback, CallbackSlot, InPlaceSlot, SharedSlot};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

/// What the callback gets: memory of the completer's own, so that a missing order or a second free is seen.
type Value = Box<usize>;

/// A slot of any form, held by two.
trait Slot: Send + Sync + 'static {
    fn complete(&self) -> bool;
    fn complete_with(&self) -> bool;
    fn complete_catching(&self) -> bool;
    fn is_armed(&self) -> bool;
    /// Takes and calls or drops; forms without `take` complete.
    fn take(&self, call: bool) -> bool;
}

macro_rules! slot {
    ($type:ty, $slot:ident, $call:ident => $take:expr) => {
        impl Slot for $type {
            fn complete(&self) -> bool {
                <$type>::complete(self, Box::new(1)).is_ok()
            }

            fn complete_with(&self) -> bool {
                <$type>::complete_with(self, || Box::new(1)).is_ok()
            }

            #[cfg(feature = "std")]
            fn complete_catching(&self) -> bool {
                <$type>::complete_catching(self, Box::new(1)).is_ok_and(|outcome| outcome.is_returned())
            }

            #[cfg(not(feature = "std"))]
            fn complete_catching(&self) -> bool {
                <$type>::complete(self, Box::new(1)).is_ok()
            }

            fn is_armed(&self) -> bool {
                <$type>::is_armed(self)
            }

            fn take(&self, $call: bool) -> bool {
                let $slot = self;
                $take
            }
        }
    };
}

slot!(CallbackSlot<Value>, slot, call => match slot.take() {
    Some(callback) if call => {
        callback.call(Box::new(1));
        true
    }
    taken => taken.map(drop).is_some(),
});
slot!(SharedSlot<Value>, slot, _call => Slot::complete(slot));
slot!(InPlaceSlot<Value>, slot, _call => Slot::complete(slot));
slot!(InPlaceSlot<Value, 0>, slot, _call => Slot::complete(slot));

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Complete,
    CompleteWith,
    Catch,
    TakeAndCall,
    TakeAndDrop,
    Poll,
    Leave,
}

const ACTIONS: [Action; 7] = [
    Action::Complete,
    Action::CompleteWith,
    Action::Catch,
    Action::TakeAndCall,
    Action::TakeAndDrop,
    Action::Poll,
    Action::Leave,
];

fn act(action: Action, slot: &(impl Slot + ?Sized)) -> bool {
    match action {
        Action::Complete => slot.complete(),
        Action::CompleteWith => slot.complete_with(),
        Action::Catch => slot.complete_catching(),
        Action::TakeAndCall => slot.take(true),
        Action::TakeAndDrop => slot.take(false),
        Action::Poll => {
            let _ = slot.is_armed();
            false
        }
        Action::Leave => false,
    }
}

/// What one round left behind.
#[derive(Clone, Default)]
struct Ledger {
    calls: Count,
    fallbacks: Count,
    drops: Count,
}

impl Ledger {
    fn closure(&self) -> impl FnOnce(Value) + Send + 'static {
        let (calls, captured) = (self.calls.clone(), self.drops.on_drop());
        move |value| {
            assert_eq!(*value + captured.touch(), 8);
            calls.add();
        }
    }

    fn fallback(&self) -> impl FnOnce() -> Value + Send + 'static {
        let (fallbacks, captured) = (self.fallbacks.clone(), self.drops.on_drop());
        move || {
            fallbacks.add();
            Box::new(captured.touch() - 6)
        }
    }
}

/// Both holders act at the same time and then go.
fn round<H: std::ops::Deref<Target: Slot> + Send + 'static>(
    a: Action,
    b: Action,
    holders: (H, H),
    ledger: &Ledger,
) {
    let (here, there) = holders;
    let (won_a, won_b) = together(move || act(a, &*here), move || act(b, &*there));
    let emptied = [a, b].iter().any(|action| !matches!(action, Action::Poll | Action::Leave));
    assert_eq!(usize::from(won_a) + usize::from(won_b), usize::from(emptied), "{a:?} and {b:?}");
    assert_eq!((ledger.calls.get(), ledger.drops.get()), (1, 2), "{a:?} and {b:?}");
    // Whoever takes and drops makes the must-call fall back; so does an end without a winner.
    let may_drop = !emptied || [a, b].contains(&Action::TakeAndDrop);
    assert!(ledger.fallbacks.get() <= usize::from(may_drop), "{a:?} and {b:?}");
    assert!(emptied || ledger.fallbacks.get() == 1, "{a:?} and {b:?}");
}

/// A handle that derefs to itself, as an `Arc` does to its slot.
struct Handle(SharedSlot<Value>);

impl std::ops::Deref for Handle {
    type Target = SharedSlot<Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Runs every pair of actions; under Miri one fifth of the pairs, which its seed chooses.
fn for_each_pair(mut check: impl FnMut(Action, Action, &Ledger)) {
    let pairs = ACTIONS.iter().enumerate().flat_map(|(i, &a)| ACTIONS[i..].iter().map(move |&b| (a, b)));
    let (first, step, rounds) =
        if cfg!(miri) { (drawn_by_the_seed() % 5, 5, 1) } else { (0, 1, ROUNDS / 100) };
    for (a, b) in pairs.skip(first).step_by(step) {
        for _ in 0..rounds {
            check(a, b, &Ledger::default());
        }
    }
}

/// A number that is fixed for a seed of Miri: it feeds the keys of hash maps from there.
fn drawn_by_the_seed() -> usize {
    RandomState::new().hash_one(0) as usize
}

#[test]
fn race_pairs_of_actions_on_a_slot() {
    for_each_pair(|a, b, ledger| {
        let slot = Arc::new(CallbackSlot::from(Callback::must_call(ledger.closure(), ledger.fallback())));
        round(a, b, (Arc::clone(&slot), slot), ledger);
    });
}

#[test]
fn race_pairs_of_actions_on_a_shared_slot() {
    for_each_pair(|a, b, ledger| {
        let slot = SharedSlot::must_call(ledger.closure(), ledger.fallback());
        round(a, b, (Handle(slot.clone()), Handle(slot)), ledger);
    });
}

#[test]
fn race_pairs_of_actions_on_a_slot_in_place() {
    for_each_pair(|a, b, ledger| {
        let slot: InPlaceSlot<Value> = InPlaceSlot::must_call(ledger.closure(), ledger.fallback());
        let slot = Arc::new(slot);
        round(a, b, (Arc::clone(&slot), slot), ledger);
    });
}

#[test]
fn race_pairs_of_actions_on_a_slot_without_room() {
    for_each_pair(|a, b, ledger| {
        let slot: InPlaceSlot<Value, 0> = InPlaceSlot::must_call(ledger.closure(), ledger.fallback());
        let slot = Arc::new(slot);
        round(a, b, (Arc::clone(&slot), slot), ledger);
    });
}
