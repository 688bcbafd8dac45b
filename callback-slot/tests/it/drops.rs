//! Every path ends with each captured thing dropped exactly once, and with as many calls as promised.

use crate::support::Count;
use callback_slot::{Callback, CallbackSlot, SharedSlot};

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
