//! Races that the matrix does not have: arming against emptying, and crowds.
//!
//! The names start with `race_`, so that the many seeds of Miri can pick them.

use crate::support::{together, Count, ROUNDS};
use callback_slot::{Callback, CallbackSlot, CompleteError, SharedSlot};
use std::sync::Arc;
use std::thread;

/// A callback whose closure was made on this thread and is read wherever it is called or dropped.
fn callback(calls: &Count, drops: &Count) -> Callback<Box<usize>> {
    let (calls, captured) = (calls.clone(), drops.on_drop());
    Callback::new(move |value: Box<usize>| {
        assert_eq!(*value + captured.touch(), 8);
        calls.add();
    })
}

/// The edge where a missing ordering shows: armed there, emptied here, with nothing else between the two.
#[test]
fn race_armed_there_emptied_here() {
    for round in 0..ROUNDS.max(2) {
        let (calls, drops) = (Count::new(), Count::new());
        let slot = Arc::new(CallbackSlot::empty());
        let (armer, armed) = (Arc::clone(&slot), callback(&calls, &drops));
        let ((), emptied) = together(
            move || armer.arm(armed).expect("nobody else arms"),
            move || match round % 2 {
                0 => slot.complete(Box::new(1)).is_ok(),
                _ => slot.take().map(drop).is_some(),
            },
        );
        assert_eq!(calls.get(), usize::from(emptied && round % 2 == 0));
        assert_eq!(drops.get(), 1);
    }
}

/// Made on one thread, so that its captures are too: the closure itself has to be visible, not only its address.
#[test]
fn race_made_and_armed_there_dropped_here() {
    for _ in 0..ROUNDS {
        let (calls, drops) = (Count::new(), Count::new());
        let slot = Arc::new(CallbackSlot::empty());
        let (armer, counted) = (Arc::clone(&slot), (calls.clone(), drops.clone()));
        together(
            move || armer.arm(callback(&counted.0, &counted.1)).expect("nobody else arms"),
            move || {
                // Asking orders nothing, so it is for the taking alone to see the closure.
                while !slot.is_armed() {
                    thread::yield_now();
                }
                drop(slot.take());
            },
        );
        assert_eq!((calls.get(), drops.get()), (0, 1));
    }
}

#[test]
fn race_two_arm_one_slot() {
    for _ in 0..ROUNDS {
        let (calls, drops) = (Count::new(), Count::new());
        let slot = Arc::new(CallbackSlot::empty());
        let (here, there) = (Arc::clone(&slot), Arc::clone(&slot));
        let (first, second) = (callback(&calls, &drops), callback(&calls, &drops));
        let (a, b) = together(
            move || here.arm(first).map_err(drop).is_ok(),
            move || there.arm(second).map_err(drop).is_ok(),
        );
        assert!(a != b);
        assert_eq!(drops.get(), 1, "the one that did not fit was given back");
        slot.complete(Box::new(1)).unwrap();
        assert_eq!((calls.get(), drops.get()), (1, 2));
    }
}

#[test]
fn race_a_crowd_completes_one_shared_slot() {
    const CROWD: usize = if cfg!(miri) { 3 } else { 8 };
    for _ in 0..ROUNDS.min(300) {
        let (calls, drops) = (Count::new(), Count::new());
        let (called, captured) = (calls.clone(), drops.on_drop());
        let slot = SharedSlot::new(move |value: Box<usize>| {
            assert_eq!(*value + captured.touch(), 8);
            called.add();
        });
        let crowd: Vec<_> = (0..CROWD)
            .map(|_| {
                let slot = slot.clone();
                thread::spawn(move || match slot.complete(Box::new(1)) {
                    Ok(()) => true,
                    Err(CompleteError::AlreadyCompleted(value)) => *value != 1,
                    Err(CompleteError::NeverArmed(_)) => unreachable!("it is born armed"),
                })
            })
            .collect();
        drop(slot);
        let winners = crowd.into_iter().map(|one| one.join().unwrap()).filter(|&won| won).count();
        assert_eq!((winners, calls.get(), drops.get()), (1, 1, 1));
    }
}

/// The last of two handles goes, while the other is still inside its own drop.
#[test]
fn race_two_drop_their_handles() {
    for _ in 0..ROUNDS {
        let (calls, drops) = (Count::new(), Count::new());
        let (called, captured) = (calls.clone(), drops.on_drop());
        let slot = SharedSlot::must_call(
            move |value: Box<usize>| {
                assert_eq!(*value + captured.touch(), 8);
                called.add();
            },
            || Box::new(1),
        );
        let other = slot.clone();
        together(move || drop(slot), move || drop(other));
        assert_eq!((calls.get(), drops.get()), (1, 1));
    }
}

/// What each owner did before its handle went is visible to the last one's fallback.
#[test]
fn race_the_last_owner_sees_what_all_did() {
    struct Shared(std::cell::UnsafeCell<[usize; 2]>);
    // SAFETY: each thread writes its own element, and they are read when both handles are gone.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    for _ in 0..ROUNDS {
        let sum = Count::new();
        let (seen, owners) = (sum.clone(), Arc::new(Shared(std::cell::UnsafeCell::new([0; 2]))));
        let shared = Arc::clone(&owners);
        let slot = SharedSlot::must_call(
            move |total: usize| (0..total).for_each(|_| seen.add()),
            // SAFETY: the fallback runs when both owners have dropped their handles.
            move || unsafe { &*shared.0.get() }.iter().sum(),
        );
        let work = move |me: usize, slot: SharedSlot<usize>, owners: Arc<Shared>| {
            // SAFETY: nobody else writes this element, nor reads it before the handle is dropped.
            unsafe { (*owners.0.get())[me] = 1 };
            drop(slot);
        };
        let (here, there) = ((slot.clone(), Arc::clone(&owners)), (slot, Arc::clone(&owners)));
        together(move || work(0, here.0, here.1), move || work(1, there.0, there.1));
        assert_eq!(sum.get(), 2);
    }
}
