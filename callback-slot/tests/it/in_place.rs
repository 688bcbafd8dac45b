//! What only the in-place form has: a stated room, and an owner that moves.

use crate::support::Count;
use callback_slot::{Callback, InPlaceSlot};

#[test]
fn room_is_as_stated() {
    type Slot = InPlaceSlot<()>;
    assert!(Slot::fits::<[usize; 8]>());
    assert!(!Slot::fits::<[usize; 9]>());
    assert!(!Slot::fits::<[u8; size_of::<[usize; 8]>() + 1]>());
    #[repr(align(64))]
    struct Aligned;
    assert!(!Slot::fits::<Aligned>(), "aligned to more than a word, though it has no size");
    assert!(InPlaceSlot::<(), 0>::fits::<()>());
    assert!(!InPlaceSlot::<(), 0>::fits::<u8>());
    assert_eq!(size_of::<Slot>(), 9 * size_of::<usize>());
}

/// The closure moves with its owner: what it captured is found at the new place.
#[test]
fn armed_slot_is_moved() {
    let (calls, drops) = (Count::new(), Count::new());
    let make = || {
        let (calls, captured) = (calls.clone(), drops.on_drop());
        InPlaceSlot::<usize>::new(move |value| {
            assert_eq!(captured.touch(), value);
            calls.add();
        })
    };
    let mut slots: Vec<_> = (0..5).map(|_| make()).collect();
    slots.reserve(100);
    slots.swap(0, 4);
    let boxed = Box::new(slots.remove(2));
    assert!(boxed.is_armed());
    boxed.complete(7).unwrap();
    assert!(!boxed.is_armed());
    for slot in &slots {
        slot.complete(7).unwrap();
    }
    assert_eq!((calls.get(), drops.get()), (5, 5));
    let dropped = std::mem::replace(&mut slots[0], make());
    drop(dropped);
    drop(slots);
    assert_eq!((calls.get(), drops.get()), (5, 6));
}

/// A callback made elsewhere moves in as it is, be there room or not.
#[test]
fn armed_with_a_callback() {
    let (calls, drops) = (Count::new(), Count::new());
    let make = || {
        let (calls, captured) = (calls.clone(), drops.on_drop());
        Callback::new(move |value| {
            assert_eq!(captured.touch(), value);
            calls.add();
        })
    };
    InPlaceSlot::<usize>::from(make()).complete(7).unwrap();
    InPlaceSlot::<usize, 0>::from(make()).complete(7).unwrap();
    assert_eq!((calls.get(), drops.get()), (2, 2));
    drop(InPlaceSlot::<usize>::from(make()));
    assert_eq!((calls.get(), drops.get()), (2, 3));
}

#[test]
fn default_is_empty() {
    let slot = InPlaceSlot::<usize, 2>::default();
    assert_eq!(format!("{slot:?}"), "InPlaceSlot(Empty)");
    assert!(slot.complete(7).is_err());
    assert_eq!(format!("{:?}", InPlaceSlot::<usize>::new(drop)), "InPlaceSlot(Armed)");
}
