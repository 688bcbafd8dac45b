//! Every path ends with each captured thing dropped exactly once, and with as many calls as promised.

use crate::support::Count;
use callback_slot::{Callback, CallbackSlot, CompleteError, InPlaceSlot, SharedSlot};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Calls and drops of one callback's closure, and of its fallback.
#[derive(Clone, Default)]
struct Ledger {
    calls: Count,
    closure_drops: Count,
    fallback_calls: Count,
    fallback_drops: Count,
}

impl Ledger {
    fn closure(&self) -> impl FnOnce(u64) + Send + 'static {
        let (calls, captured) = (self.calls.clone(), self.closure_drops.on_drop());
        move |value| {
            captured.touch();
            assert!(value == 1 || value == 2);
            calls.add();
        }
    }

    fn fallback(&self) -> impl FnOnce() -> u64 + Send + 'static {
        let (calls, captured) = (self.fallback_calls.clone(), self.fallback_drops.on_drop());
        move || {
            captured.touch();
            calls.add();
            2
        }
    }

    fn plain(&self) -> Callback<u64> {
        Callback::new(self.closure())
    }

    fn must_call(&self) -> Callback<u64> {
        Callback::must_call(self.closure(), self.fallback())
    }

    /// Checks a plain callback that was called, or not.
    fn assert_plain(&self, called: bool) {
        assert_eq!((self.calls.get(), self.closure_drops.get()), (usize::from(called), 1));
    }

    /// Checks a must-call callback that fell back, or not. Called it is in any case.
    fn assert_must_call(&self, fell_back: bool) {
        assert_eq!((self.calls.get(), self.closure_drops.get()), (1, 1));
        assert_eq!((self.fallback_calls.get(), self.fallback_drops.get()), (usize::from(fell_back), 1));
    }
}

#[test]
fn callback_called() {
    let ledger = Ledger::default();
    ledger.plain().call(1);
    ledger.assert_plain(true);
    let ledger = Ledger::default();
    ledger.must_call().call(1);
    ledger.assert_must_call(false);
}

#[test]
fn callback_dropped() {
    let ledger = Ledger::default();
    drop(ledger.plain());
    ledger.assert_plain(false);
    let ledger = Ledger::default();
    drop(ledger.must_call());
    ledger.assert_must_call(true);
}

#[test]
fn slot_completed_then_dropped() {
    let ledger = Ledger::default();
    let slot = CallbackSlot::from(ledger.plain());
    slot.complete(1).unwrap();
    ledger.assert_plain(true);
    drop(slot);
    ledger.assert_plain(true);
}

#[test]
fn slot_dropped_armed() {
    let ledger = Ledger::default();
    drop(CallbackSlot::from(ledger.plain()));
    ledger.assert_plain(false);
    let ledger = Ledger::default();
    drop(CallbackSlot::from(ledger.must_call()));
    ledger.assert_must_call(true);
}

#[test]
fn shared_slot_completed_then_dropped() {
    let ledger = Ledger::default();
    let slot = SharedSlot::must_call(ledger.closure(), ledger.fallback());
    let other = slot.clone();
    drop(slot);
    other.complete(1).unwrap();
    ledger.assert_must_call(false);
    drop(other);
    ledger.assert_must_call(false);
}

#[test]
fn shared_slot_dropped_armed() {
    let ledger = Ledger::default();
    let slot = SharedSlot::new(ledger.closure());
    let other = slot.clone();
    drop(slot);
    assert_eq!(ledger.closure_drops.get(), 0, "a handle is left");
    drop(other);
    ledger.assert_plain(false);
    let ledger = Ledger::default();
    let slot = SharedSlot::must_call(ledger.closure(), ledger.fallback());
    drop(slot.clone());
    drop(slot);
    ledger.assert_must_call(true);
}

#[test]
fn slot_taken_then_dropped_or_called() {
    let ledger = Ledger::default();
    let slot = CallbackSlot::from(ledger.plain());
    drop(slot.take().unwrap());
    ledger.assert_plain(false);
    assert!(slot.take().is_none());
    let ledger = Ledger::default();
    CallbackSlot::from(ledger.must_call()).take().unwrap().call(1);
    ledger.assert_must_call(false);
}

#[test]
fn slot_reset_and_rearmed() {
    let (first, second) = (Ledger::default(), Ledger::default());
    let mut slot = CallbackSlot::from(first.must_call());
    let old = slot.rearm(second.must_call()).expect("it was armed");
    assert_eq!(first.closure_drops.get(), 0);
    drop(old);
    first.assert_must_call(true);
    slot.complete(1).unwrap();
    second.assert_must_call(false);
    assert!(slot.reset().is_none(), "completed");
    assert_eq!(slot.complete(1), Err(CompleteError::NeverArmed(1)), "empty again");
    let third = Ledger::default();
    slot.arm(third.plain()).unwrap();
    drop(slot.reset());
    third.assert_plain(false);
}

#[test]
fn slot_that_refuses_gives_the_callback_back() {
    let (first, second) = (Ledger::default(), Ledger::default());
    let slot = CallbackSlot::from(first.plain());
    slot.arm(second.plain()).expect_err("armed already").call(2);
    second.assert_plain(true);
    slot.complete(1).unwrap();
    let third = Ledger::default();
    drop(slot.arm(third.must_call()).expect_err("completed already"));
    third.assert_must_call(true);
}

#[test]
fn loser_gets_back_what_it_brought() {
    let slot = CallbackSlot::<Box<usize>>::empty();
    assert_eq!(slot.complete(Box::new(3)), Err(CompleteError::NeverArmed(Box::new(3))));
    let captured = Box::new(4);
    let builder = slot.complete_with(move || captured).unwrap_err();
    assert!(matches!(builder, CompleteError::NeverArmed(_)));
    assert_eq!(*(builder.into_inner())(), 4);
    slot.arm(Callback::new(drop)).unwrap();
    slot.complete(Box::new(5)).unwrap();
    assert_eq!(slot.complete(Box::new(6)), Err(CompleteError::AlreadyCompleted(Box::new(6))));
    let lost = slot.complete_with(|| unreachable!("a loser builds nothing")).unwrap_err();
    assert!(matches!(lost, CompleteError::AlreadyCompleted(_)));
}

#[test]
fn in_place_on_every_path() {
    fn check<const WORDS: usize>() {
        type Slot<const WORDS: usize> = InPlaceSlot<u64, WORDS>;
        let ledger = Ledger::default();
        let slot = Slot::<WORDS>::must_call(ledger.closure(), ledger.fallback());
        let moved = Box::new(slot);
        moved.complete(1).unwrap();
        ledger.assert_must_call(false);
        drop(moved);
        ledger.assert_must_call(false);

        let ledger = Ledger::default();
        drop(Slot::<WORDS>::must_call(ledger.closure(), ledger.fallback()));
        ledger.assert_must_call(true);

        let (first, second, third) = (Ledger::default(), Ledger::default(), Ledger::default());
        let mut slot = Slot::<WORDS>::new(first.closure());
        slot.rearm(second.closure());
        first.assert_plain(false);
        slot.complete(1).unwrap();
        second.assert_plain(true);
        slot = Slot::<WORDS>::from(third.must_call());
        second.assert_plain(true);
        slot.reset();
        third.assert_must_call(true);
        assert_eq!(slot.complete(1), Err(CompleteError::NeverArmed(1)));
    }
    check::<0>();
    check::<3>();
    check::<8>();
}

#[test]
fn shared_slot_takes_over_a_callback() {
    let ledger = Ledger::default();
    let slot = SharedSlot::from(ledger.must_call());
    slot.complete(1).unwrap();
    ledger.assert_must_call(false);
    let ledger = Ledger::default();
    drop(SharedSlot::from(ledger.must_call()));
    ledger.assert_must_call(true);
}

/// A must-call runs though its holder is unwinding, and what unwinds goes on.
#[test]
fn must_call_while_unwinding() {
    fn unwind_over<H>(make: impl FnOnce(&Ledger) -> H) {
        let ledger = Ledger::default();
        let holder = AssertUnwindSafe(make(&ledger));
        let panic = catch_unwind(move || {
            let _holder = holder;
            resume_unwind(Box::new("the holder's own panic"));
        });
        assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "the holder's own panic");
        ledger.assert_must_call(true);
    }
    unwind_over(Ledger::must_call);
    unwind_over(|ledger| CallbackSlot::from(ledger.must_call()));
    unwind_over(|ledger| SharedSlot::must_call(ledger.closure(), ledger.fallback()));
    unwind_over(|ledger| InPlaceSlot::<u64>::must_call(ledger.closure(), ledger.fallback()));
    unwind_over(|ledger| InPlaceSlot::<u64, 0>::must_call(ledger.closure(), ledger.fallback()));
}

/// The fallback says what is true when it runs, not when it was made.
#[test]
fn fallback_is_evaluated_at_the_drop() {
    let (proposed, answers) = (Count::new(), Count::new());
    let (asked, answered) = (proposed.clone(), answers.clone());
    let slot = SharedSlot::must_call(
        move |indeterminate: bool| {
            assert!(indeterminate);
            answered.add();
        },
        move || asked.get() == 1,
    );
    proposed.add();
    drop(slot);
    assert_eq!(answers.get(), 1);
}
