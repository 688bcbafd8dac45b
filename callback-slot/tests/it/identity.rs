//! Addresses are used again, and some are shared: nothing may be taken for what lay at its address before, or lies there too.

use crate::support::{together, ROUNDS};
use callback_slot::{Callback, CallbackSlot, OptionCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Makes one thing after the other, each with one allocation, and checks it with its number and with its predecessor's end
/// behind it. Shows that addresses were in fact used again.
#[cfg(not(miri))]
fn one_after_the_other<V>(make: impl Fn(usize) -> V, mut check: impl FnMut(usize, V)) {
    let (mut before, mut again) = (0, 0);
    for number in 1..=1_000 {
        let made = make(number);
        let address = crate::memory::last_address();
        again += usize::from(address == before);
        before = address;
        check(number, made);
    }
    assert!(again > 0, "no address was used twice in a row, so nothing was tested");
}

/// A callback that tells its number.
#[cfg(not(miri))]
fn tells(number: usize) -> Callback<Arc<AtomicUsize>> {
    Callback::new(move |told: Arc<AtomicUsize>| told.store(number, Ordering::Relaxed))
}

/// A slot that is armed again is not completed, though its word is that of the callback before.
#[cfg(not(miri))]
#[test]
fn a_callback_where_another_lay() {
    let (mut slot, told) = (CallbackSlot::empty(), Arc::new(AtomicUsize::new(0)));
    one_after_the_other(tells, |number, callback| {
        assert!(slot.rearm(callback).is_none());
        assert!(slot.is_armed());
        if number % 3 == 0 {
            slot.take().unwrap().call(Arc::clone(&told));
        } else {
            slot.complete(Arc::clone(&told)).unwrap();
        }
        assert_eq!(told.load(Ordering::Relaxed), number);
        assert!(!slot.is_armed());
        assert!(slot.complete(Arc::clone(&told)).is_err());
    });
}

#[cfg(not(miri))]
#[test]
fn a_shared_slot_where_another_lay() {
    let told = Arc::new(AtomicUsize::new(0));
    let make = |number| {
        callback_slot::SharedSlot::new(move |told: Arc<AtomicUsize>| told.store(number, Ordering::Relaxed))
    };
    one_after_the_other(make, |number, slot| {
        let other = slot.clone();
        assert!(other.is_armed());
        slot.complete(Arc::clone(&told)).unwrap();
        assert_eq!(told.load(Ordering::Relaxed), number);
        assert!(other.complete(Arc::clone(&told)).is_err());
    });
}

#[cfg(all(not(miri), any(feature = "wait", feature = "future")))]
#[test]
fn a_reply_where_another_lay() {
    one_after_the_other(
        |_| callback_slot::reply(),
        |number, (callback, reply)| {
            assert!(!reply.is_ready());
            callback.call(number);
            assert_eq!(reply.try_into_value().unwrap(), Ok(number));
        },
    );
}

#[cfg(not(miri))]
#[test]
fn a_value_where_another_lay() {
    let cell = OptionCell::empty();
    one_after_the_other(Box::new, |number, value| {
        assert_eq!(cell.try_put(value), Ok(()));
        assert_eq!(cell.try_put(Box::new(0)), Err(Box::new(0)));
        assert_eq!(cell.take(), Some(Box::new(number)));
        assert_eq!(cell.take(), None);
    });
}

/// Zero-sized callbacks of one type have one word, and are as many callbacks as were made.
#[test]
fn equal_words_are_several_callbacks() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let called = |()| {
        CALLS.fetch_add(1, Ordering::Relaxed);
    };
    let slot = CallbackSlot::new(called);
    let refused = slot.arm(Callback::new(called)).expect_err("it is armed, though with an equal word");
    slot.complete(()).unwrap();
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
    refused.call(());
    assert_eq!(CALLS.load(Ordering::Relaxed), 2);

    let cell = OptionCell::new(Callback::new(called));
    let refused = cell.try_put(Callback::new(called)).expect_err("it holds one, though an equal one");
    let replaced = cell.put(refused).expect("it held another");
    replaced.call(());
    cell.take().unwrap().call(());
    assert_eq!(CALLS.load(Ordering::Relaxed), 4);
}

/// Each `Arc` of one value is an owner, though all have one address.
#[test]
fn equal_addresses_are_several_owners() {
    let value = Arc::new(7);
    let cell = OptionCell::new(Arc::clone(&value));
    assert!(cell.try_put(Arc::clone(&value)).is_err());
    assert_eq!(Arc::strong_count(&value), 2, "the one that was refused is gone");
    assert!(cell.put(Arc::clone(&value)).is_some());
    assert_eq!(Arc::strong_count(&value), 2, "the one that was replaced is gone");
    drop(cell);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Two threads take values and put others in their memory: who takes gets what lies there now, and nobody else gets it.
#[test]
fn race_values_are_replaced_at_their_addresses() {
    const VALUES: usize = if cfg!(miri) { 4 } else { 50 * ROUNDS };
    let cell = Arc::new(OptionCell::empty());
    let work = |first: usize, cell: Arc<OptionCell<Box<usize>>>| {
        move || {
            let mut out = Vec::new();
            for number in (first..VALUES).step_by(2) {
                out.extend(cell.take().map(|value| *value));
                // The allocator is free to use the memory of the value that was just taken.
                out.extend(cell.try_put(Box::new(number)).err().map(|value| *value));
            }
            out
        }
    };
    let (mut out, others) = together(work(0, Arc::clone(&cell)), work(1, Arc::clone(&cell)));
    out.extend(others);
    out.extend(cell.take().map(|value| *value));
    out.sort_unstable();
    assert!(out.into_iter().eq(0..VALUES), "each value comes out once");
}
