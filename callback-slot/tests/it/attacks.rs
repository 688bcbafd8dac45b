//! Attacks that belong to no other room: on lifetimes, at the end of a thread, through cycles. `docs/soundness.md` lists all.

use crate::support::{Count, OnDrop};
use callback_slot::{Callback, CallbackSlot, InPlaceSlot, OptionCell, SharedSlot};
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use std::thread;

/// A callback for text of any lifetime stands for one for text that lives for ever, and outlives the former.
#[test]
fn a_must_call_outlives_the_lifetime_of_its_value() {
    fn extend<'a>(
        callback: Callback<&'a str>,
        shared: SharedSlot<&'a str>,
        in_place: InPlaceSlot<&'a str>,
    ) -> Attacked {
        (callback, shared, in_place)
    }
    type Attacked = (Callback<&'static str>, SharedSlot<&'static str>, InPlaceSlot<&'static str>);

    let called = Count::new();
    let attacked = {
        let (text, called) = (String::from("short"), called.clone());
        let made = move |text: &str| (0..text.len()).for_each(|_| called.add());
        let shared = SharedSlot::must_call(made.clone(), || "fallback");
        let in_place = InPlaceSlot::must_call(made.clone(), || "fallback");
        let callback = Callback::must_call(made.clone(), || "fallback");
        Callback::new(made).call(&text);
        extend(callback, shared, in_place)
    };
    assert_eq!(called.get(), 5);
    drop(attacked);
    assert_eq!(called.get(), 5 + 8 + 8 + 8);
}

/// The destructors of a thread's own values run when much of the thread is gone: callbacks work there all the same.
#[test]
fn callbacks_run_while_their_thread_ends() {
    type Kept = (SharedSlot<usize>, Callback<usize>, OptionCell<Box<OnDrop>>);
    thread_local! {
        static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
    }
    let (called, dropped) = (Count::new(), Count::new());
    let (counted, captured) = (called.clone(), dropped.clone());
    let ended = thread::spawn(move || {
        let inner = SharedSlot::must_call(
            move |value| {
                assert_eq!(value, 7);
                counted.add();
            },
            || unreachable!("it is completed"),
        );
        let (one, other) = (captured.on_drop(), captured.on_drop());
        let outer = SharedSlot::must_call(move |value| inner.complete(value).unwrap(), move || one.touch());
        let callback = Callback::new(move |_| drop(other));
        KEPT.set(Some((outer, callback, OptionCell::new(Box::new(captured.on_drop())))));
    });
    ended.join().unwrap();
    assert_eq!((called.get(), dropped.get()), (1, 3));
}

/// Each callback completes the other's slot, and loses to whoever began.
#[test]
fn two_callbacks_complete_each_other() {
    let slots: Arc<[CallbackSlot<usize>; 2]> = Arc::new([CallbackSlot::empty(), CallbackSlot::empty()]);
    let refused = Count::new();
    for me in [0, 1] {
        let (all, refused) = (Arc::downgrade(&slots), refused.clone());
        let callback = Callback::new(move |value| {
            let all = all.upgrade().expect("it is being completed");
            if all[1 - me].complete(value + 1).is_err() {
                assert_eq!(value, 2);
                refused.add();
            }
        });
        slots[me].arm(callback).unwrap();
    }
    slots[0].complete(1).unwrap();
    assert_eq!(refused.get(), 1);
}

/// A closure that lies in what it owns: its run ends the cycle, and the owner goes with the last one outside.
#[test]
fn a_closure_owns_the_owner_of_its_room() {
    struct Owner {
        callback: InPlaceSlot<usize>,
        _counted: OnDrop,
    }

    let dropped = Count::new();
    let passed: Arc<OnceLock<Arc<Owner>>> = Arc::default();
    let captured = Arc::clone(&passed);
    let owner = Arc::new(Owner {
        callback: InPlaceSlot::new(move |value| {
            let owner = captured.get().expect("set below");
            assert!(!owner.callback.is_armed());
            assert!(owner.callback.complete(value).is_err());
            drop(captured);
        }),
        _counted: dropped.on_drop(),
    });
    assert!(passed.set(Arc::clone(&owner)).is_ok());
    drop(passed);
    owner.callback.complete(7).unwrap();
    assert_eq!((Arc::strong_count(&owner), dropped.get()), (1, 0));
    drop(owner);
    assert_eq!(dropped.get(), 1);
}
