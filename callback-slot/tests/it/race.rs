//! Two threads, one slot, exactly one winner, and everything before either side is visible in the callback.

use crate::support::{together, Count, ROUNDS};
use callback_slot::{CallbackSlot, SharedSlot};
use std::sync::Arc;

#[test]
fn two_complete_one_slot() {
    for _ in 0..ROUNDS {
        let (calls, drops) = (Count::new(), Count::new());
        let (call, captured) = (calls.clone(), drops.on_drop());
        let slot = Arc::new(CallbackSlot::new(move |value: Box<usize>| {
            assert_eq!(*value + captured.touch(), 8);
            call.add();
        }));
        let other = Arc::clone(&slot);
        let (a, b) = together(
            move || slot.complete(Box::new(1)).is_ok(),
            move || other.complete_with(|| Box::new(1)).is_ok(),
        );
        assert!(a != b);
        assert_eq!((calls.get(), drops.get()), (1, 1));
    }
}

#[test]
fn two_complete_one_shared_slot() {
    for _ in 0..ROUNDS {
        let (calls, drops) = (Count::new(), Count::new());
        let (call, captured) = (calls.clone(), drops.on_drop());
        let slot = SharedSlot::must_call(
            move |value: Box<usize>| {
                assert_eq!(*value + captured.touch(), 8);
                call.add();
            },
            || unreachable!("somebody completes it"),
        );
        let other = slot.clone();
        let (a, b) = together(
            move || slot.complete(Box::new(1)).is_ok(),
            move || other.complete_with(|| Box::new(1)).is_ok(),
        );
        assert!(a != b);
        assert_eq!((calls.get(), drops.get()), (1, 1));
    }
}
