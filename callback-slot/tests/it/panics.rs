//! A panic in user code leaves the slot completed, drops everything once, and runs nothing twice.

use crate::support::Count;
use callback_slot::{Callback, CallbackSlot, InPlaceSlot, SharedSlot};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// A panic without a message on the terminal.
fn fail() -> ! {
    resume_unwind(Box::new("on purpose"))
}

/// Whether `action` panicked with `fail`.
fn fails<R>(action: impl FnOnce() -> R) -> bool {
    match catch_unwind(AssertUnwindSafe(action)) {
        Ok(_) => false,
        Err(payload) => *payload.downcast::<&str>().expect("another panic") == "on purpose",
    }
}

/// Panics when it is dropped, once, unless something is unwinding already.
struct Bomb(Count);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.add();
        if !std::thread::panicking() {
            fail();
        }
    }
}

/// Runs `$check` with each form of slot, made of the closure by `$make`.
macro_rules! each_slot {
    ($closure:expr, |$slot:ident| $check:expr) => {{
        {
            let $slot = CallbackSlot::new($closure);
            $check;
        }
        {
            let $slot = SharedSlot::new($closure);
            $check;
        }
        {
            let $slot = InPlaceSlot::<_>::new($closure);
            $check;
        }
        {
            let $slot = InPlaceSlot::<_, 0>::new($closure);
            $check;
        }
    }};
}

#[test]
fn panic_in_the_closure() {
    let (calls, drops) = (Count::new(), Count::new());
    let closure = || {
        let (calls, captured) = (calls.clone(), drops.on_drop());
        move |value: Box<usize>| {
            captured.touch();
            calls.add();
            let _value = value;
            fail()
        }
    };
    each_slot!(closure(), |slot| {
        assert!(fails(|| slot.complete(Box::new(1))));
        assert!(!slot.is_armed());
        assert_eq!(*slot.complete(Box::new(2)).unwrap_err().into_inner(), 2);
    });
    assert!(fails(|| Callback::new(closure()).call(Box::new(1))));
    assert_eq!((calls.get(), drops.get()), (5, 5));
}

#[test]
fn panic_in_the_closures_destructor() {
    let (calls, drops) = (Count::new(), Count::new());
    let closure = || {
        let (calls, bomb) = (calls.clone(), Bomb(drops.clone()));
        move |_: usize| {
            let _bomb = &bomb;
            calls.add();
        }
    };
    // Called, and then dropped by the call.
    each_slot!(closure(), |slot| {
        assert!(fails(|| slot.complete(1)));
        assert!(!slot.is_armed());
    });
    assert_eq!((calls.get(), drops.get()), (4, 4));
    // Dropped uncalled.
    each_slot!(closure(), |slot| assert!(fails(move || drop(slot))));
    assert!(fails(|| drop(Callback::new(closure()))));
    assert_eq!((calls.get(), drops.get()), (4, 9));
}

#[test]
fn panic_in_the_values_destructor() {
    let (calls, drops) = (Count::new(), Count::new());
    let closure = || {
        let calls = calls.clone();
        move |value: Bomb| {
            calls.add();
            drop(value);
        }
    };
    each_slot!(closure(), |slot| {
        assert!(fails(|| slot.complete(Bomb(drops.clone()))));
        // The loser's value is given back, so its destructor is the loser's matter.
        let refused = slot.complete(Bomb(drops.clone())).unwrap_err();
        assert!(fails(move || drop(refused)));
    });
    assert_eq!((calls.get(), drops.get()), (4, 8));
}

#[test]
fn panic_in_the_builder() {
    let (calls, drops) = (Count::new(), Count::new());
    let closure = || {
        let (calls, captured) = (calls.clone(), drops.on_drop());
        move |_: usize| {
            captured.touch();
            calls.add();
        }
    };
    each_slot!(closure(), |slot| {
        assert!(fails(|| slot.complete_with(|| fail())));
        assert!(slot.complete(1).is_err(), "the claim was not given back");
    });
    assert_eq!((calls.get(), drops.get()), (0, 4));
}

/// A builder that panics is one more path on which a must-call is dropped.
#[test]
fn panic_in_the_builder_of_a_must_call() {
    let answers = Count::new();
    let closure = || {
        let answers = answers.clone();
        move |value: usize| (0..value).for_each(|_| answers.add())
    };
    let slot = CallbackSlot::must_call(closure(), || 2);
    assert!(fails(|| slot.complete_with(|| fail())));
    let slot = SharedSlot::must_call(closure(), || 2);
    assert!(fails(|| slot.complete_with(|| fail())));
    let slot = InPlaceSlot::<usize>::must_call(closure(), || 2);
    assert!(fails(|| slot.complete_with(|| fail())));
    assert_eq!(answers.get(), 6);
}

/// The fallback's captures go after the call: if they panic, the closure has run.
#[test]
fn panic_in_the_fallbacks_destructor() {
    let (calls, drops) = (Count::new(), Count::new());
    let (counted, bomb) = (calls.clone(), Bomb(drops.clone()));
    let callback = Callback::must_call(
        move |_: usize| counted.add(),
        move || {
            let _bomb = &bomb;
            unreachable!("it is called")
        },
    );
    assert!(fails(|| callback.call(1)));
    assert_eq!((calls.get(), drops.get()), (1, 1));
}

#[test]
fn panic_while_rearming_in_place() {
    let drops = Count::new();
    let (bomb, captured) = (Bomb(drops.clone()), drops.on_drop());
    let mut slot = InPlaceSlot::<usize>::new(move |_| drop(bomb));
    assert!(fails(|| slot.rearm(move |_| assert_eq!(captured.touch(), 7))));
    assert!(!slot.is_armed(), "empty: the old callback is gone, the new one never came in");
    assert_eq!(drops.get(), 2);
    slot.rearm(drop);
    slot.complete(1).unwrap();
}

#[cfg(feature = "std")]
mod caught {
    use super::*;
    use callback_slot::{fallback_panics, CallOutcome};
    use std::sync::Mutex;

    /// The count of caught panics is the process's: tests that look at it take turns.
    static TURN: Mutex<()> = Mutex::new(());

    #[test]
    fn catching_call_returns_the_payload() {
        each_slot!(|_: usize| fail(), |slot| {
            let Ok(CallOutcome::Panicked(payload)) = slot.complete_catching(1) else { panic!("not caught") };
            assert_eq!(*payload.downcast::<&str>().unwrap(), "on purpose");
            assert!(slot.complete_catching(1).is_err(), "completed all the same");
        });
        assert!(!Callback::new(|_: usize| fail()).call_catching(1).is_returned());
        assert!(Callback::new(|_: usize| ()).call_catching(1).is_returned());
    }

    #[test]
    fn catching_call_catches_destructors() {
        let drops = Count::new();
        let bomb = Bomb(drops.clone());
        let callback = Callback::new(move |_: usize| drop(bomb));
        assert!(!callback.call_catching(1).is_returned());
        assert!(!Callback::new(drop).call_catching(Bomb(drops.clone())).is_returned());
        assert_eq!(drops.get(), 2);
    }

    /// Caught and counted, though nobody unwinds, and also though somebody does.
    #[test]
    fn panic_in_a_fallback_is_counted() {
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (before, drops) = (fallback_panics(), Count::new());
        let captured = drops.on_drop();
        drop(Callback::must_call(move |_: usize| assert_eq!(captured.touch(), 7), || fail()));
        assert_eq!((fallback_panics() - before, drops.get()), (1, 1), "the closure has no value to run with");
        drop(SharedSlot::must_call(|_: usize| fail(), || 7));
        assert_eq!(fallback_panics() - before, 2);

        let armed = SharedSlot::must_call(|_: usize| fail(), || 7);
        assert!(fails(move || {
            let _armed = armed;
            fail()
        }));
        assert_eq!(fallback_panics() - before, 3, "a second panic while unwinding did not abort");
    }

    /// A panic's payload is a value too, and its destructor may panic in turn.
    #[test]
    fn panic_in_the_payloads_destructor_is_contained() {
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        /// The payload of its own panic has no size: that one is leaked on purpose, and is nothing here.
        struct Payload(Count);
        impl Drop for Payload {
            fn drop(&mut self) {
                self.0.add();
                resume_unwind(Box::new(()));
            }
        }
        let (before, drops) = (fallback_panics(), Count::new());
        let payload = Payload(drops.clone());
        drop(Callback::must_call(|_: usize| (), move || resume_unwind(Box::new(payload))));
        assert_eq!((fallback_panics() - before, drops.get()), (1, 1));
    }
}
