//! User code may call every operation of the slot that runs it, wherever it runs: callback, destructor, builder, fallback.

use crate::support::Count;
use callback_slot::{Callback, CallbackSlot, CompleteError, InPlaceSlot, SharedSlot};
use std::sync::{Arc, OnceLock, Weak};

/// Every operation on a slot that is DONE.
fn everything_on_slot(slot: &CallbackSlot<usize>) {
    assert!(!slot.is_armed());
    assert_eq!(slot.complete(1), Err(CompleteError::AlreadyCompleted(1)));
    assert!(slot.complete_with(|| 1).is_err());
    #[cfg(feature = "std")]
    assert!(slot.complete_catching(1).is_err());
    assert!(slot.take().is_none());
    assert!(slot.arm(Callback::new(drop)).is_err());
    assert_eq!(format!("{slot:?}"), "CallbackSlot(Done)");
}

fn everything_on_shared(slot: &SharedSlot<usize>) {
    let clone = slot.clone();
    assert!(!clone.is_armed());
    assert_eq!(clone.complete(1), Err(CompleteError::AlreadyCompleted(1)));
    assert!(clone.complete_with(|| 1).is_err());
    #[cfg(feature = "std")]
    assert!(clone.complete_catching(1).is_err());
    assert_eq!(format!("{clone:?}"), "SharedSlot(Done)");
}

fn everything_in_place(slot: &InPlaceSlot<usize>) {
    assert!(!slot.is_armed());
    assert_eq!(slot.complete(1), Err(CompleteError::AlreadyCompleted(1)));
    assert!(slot.complete_with(|| 1).is_err());
    #[cfg(feature = "std")]
    assert!(slot.complete_catching(1).is_err());
    assert_eq!(format!("{slot:?}"), "InPlaceSlot(Done)");
}

/// Comes back to a slot when it is dropped.
struct OnDrop<S>(Arc<OnceLock<Weak<S>>>, fn(&S), Count);

impl<S> Drop for OnDrop<S> {
    fn drop(&mut self) {
        if let Some(slot) = self.0.get().and_then(Weak::upgrade) {
            (self.1)(&slot);
            self.2.add();
        }
    }
}

/// Runs one way of ending on a slot whose callback, and whose callback's captures, come back to it.
fn comes_back<S: Send + Sync + 'static>(
    make: fn(Box<dyn FnOnce(usize) + Send>) -> S,
    everything: fn(&S),
    end: fn(&S),
    expected: usize,
) {
    let (own, visits) = (Arc::new(OnceLock::<Weak<S>>::new()), Count::new());
    let (called, captured) = (Arc::clone(&own), OnDrop(Arc::clone(&own), everything, visits.clone()));
    let counted = visits.clone();
    let slot = Arc::new(make(Box::new(move |_| {
        let _captured = &captured;
        everything(&called.get().unwrap().upgrade().unwrap());
        counted.add();
    })));
    own.set(Arc::downgrade(&slot)).unwrap();
    end(&slot);
    assert_eq!(visits.get(), expected);
}

#[test]
fn callback_and_destructor_reenter_a_slot() {
    let make = |callback: Box<dyn FnOnce(usize) + Send>| CallbackSlot::new(callback);
    comes_back(make, everything_on_slot, |slot| slot.complete(7).unwrap(), 2);
    comes_back(make, everything_on_slot, |slot| assert!(slot.complete_with(|| 7).is_ok()), 2);
    comes_back(make, everything_on_slot, |slot| drop(slot.take()), 1);
    comes_back(make, everything_on_slot, |slot| slot.take().unwrap().call(7), 2);
}

#[test]
fn callback_and_destructor_reenter_a_shared_slot() {
    let make = |callback: Box<dyn FnOnce(usize) + Send>| SharedSlot::new(callback);
    comes_back(make, everything_on_shared, |slot| slot.complete(7).unwrap(), 2);
    comes_back(make, everything_on_shared, |slot| assert!(slot.complete_with(|| 7).is_ok()), 2);
}

#[test]
fn callback_and_destructor_reenter_a_slot_in_place() {
    let make = |callback: Box<dyn FnOnce(usize) + Send>| InPlaceSlot::new(callback);
    comes_back(make, everything_in_place, |slot| slot.complete(7).unwrap(), 2);
    comes_back(make, everything_in_place, |slot| assert!(slot.complete_with(|| 7).is_ok()), 2);
}

#[test]
fn builder_reenters_its_slot() {
    let calls = Count::new();
    let counted = calls.clone();
    let slot = CallbackSlot::new(move |_: usize| counted.add());
    let built = slot.complete_with(|| {
        everything_on_slot(&slot);
        7
    });
    assert!(built.is_ok());
    let counted = calls.clone();
    let slot = InPlaceSlot::new(move |_: usize| counted.add());
    let built = slot.complete_with(|| {
        everything_in_place(&slot);
        7
    });
    assert!(built.is_ok());
    assert_eq!(calls.get(), 2);
}

/// The destructor of a value that lost comes back too.
#[test]
fn destructor_of_a_refused_value_reenters() {
    struct Comes(Arc<CallbackSlot<Comes>>, Count);
    impl Drop for Comes {
        fn drop(&mut self) {
            assert!(self.0.take().is_none());
            self.1.add();
        }
    }
    let (slot, visits) = (Arc::new(CallbackSlot::new(drop)), Count::new());
    slot.complete(Comes(Arc::clone(&slot), visits.clone())).unwrap();
    drop(slot.complete(Comes(Arc::clone(&slot), visits.clone())));
    assert_eq!(visits.get(), 2);
}

/// A slot in memory that the callback frees: the callback holds the only owner of the slot that runs it.
///
/// `complete` borrows the slot, so safe code cannot end its life in there, but the last *other* owner can go.
#[test]
fn callback_drops_the_last_other_handle() {
    let (handles, calls) = (Arc::new(std::sync::Mutex::new(Vec::new())), Count::new());
    let (own, counted) = (Arc::clone(&handles), calls.clone());
    let slot = SharedSlot::new(move |_: usize| {
        own.lock().unwrap().clear();
        counted.add();
    });
    handles.lock().unwrap().extend([slot.clone(), slot.clone()]);
    slot.complete(7).unwrap();
    everything_on_shared(&slot);
    assert_eq!(calls.get(), 1);
}

/// A closure that captures a handle to its own slot, and so drops it when it has run.
#[test]
fn callback_owns_a_handle_to_its_own_slot() {
    let (handle, drops) = (Arc::new(std::sync::Mutex::new(None::<SharedSlot<usize>>)), Count::new());
    let (own, captured) = (Arc::clone(&handle), drops.on_drop());
    let slot = SharedSlot::new(move |_: usize| {
        captured.touch();
        everything_on_shared(own.lock().unwrap().as_ref().unwrap());
    });
    *handle.lock().unwrap() = Some(slot.clone());
    drop(handle);
    slot.complete(7).unwrap();
    assert_eq!(drops.get(), 1);
    drop(slot);
    assert_eq!(drops.get(), 1);
}

/// The callback's caller holds its slot in something that the callback empties.
#[test]
fn callback_frees_the_owner_of_its_slot() {
    let (owner, calls) = (Arc::new(OnceLock::<Weak<CallbackSlot<usize>>>::new()), Count::new());
    let (own, counted) = (Arc::clone(&owner), calls.clone());
    let slot = Arc::new(CallbackSlot::new(move |_: usize| {
        assert!(own.get().unwrap().upgrade().is_none(), "the slot is gone before its callback runs");
        counted.add();
    }));
    owner.set(Arc::downgrade(&slot)).unwrap();
    let callback = slot.take().unwrap();
    drop(slot);
    callback.call(7);
    assert_eq!(calls.get(), 1);
}
