//! The one-word option cell, with every kind of owner.

use crate::support::{together, Count, OnDrop, ROUNDS};
use callback_slot::{Callback, OptionCell};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Weak};

#[test]
fn boxes_arcs_and_callbacks() {
    let drops = Count::new();
    let cell = OptionCell::new(Box::new(drops.on_drop()));
    assert_eq!(cell.take().unwrap().touch(), 7);
    assert!(cell.take().is_none());
    assert_eq!(drops.get(), 1);

    let shared = Arc::new(drops.on_drop());
    let cell = OptionCell::from(Arc::clone(&shared));
    assert_eq!(Arc::strong_count(&shared), 2);
    drop(cell);
    assert_eq!(Arc::strong_count(&shared), 1);

    let called = Count::new();
    let counted = called.clone();
    let cell = OptionCell::default();
    cell.try_put(Callback::new(move |_: usize| counted.add())).unwrap();
    cell.take().unwrap().call(7);
    assert_eq!(called.get(), 1);
}

/// The address of a zero-sized box is the alignment of its type; the smallest is that of the slots' sentinel.
#[test]
fn zero_sized_owners() {
    struct Nothing;
    let cell = OptionCell::new(Box::new(Nothing));
    assert!(cell.is_some());
    assert!(cell.try_put(Box::new(Nothing)).is_err());
    assert!(cell.swap(Some(Box::new(Nothing))).is_some());
    assert!(cell.into_inner().is_some());
    let cell = OptionCell::new(Arc::new(()));
    assert_eq!(cell.take(), Some(Arc::new(())));
}

#[test]
fn replaced_values_are_handed_out() {
    let drops = Count::new();
    let cell = OptionCell::empty();
    assert!(cell.put(Box::new(drops.on_drop())).is_none());
    let first = cell.put(Box::new(drops.on_drop())).unwrap();
    assert_eq!(drops.get(), 0);
    drop(first);
    assert_eq!(drops.get(), 1);
    drop(cell.try_put(Box::new(drops.on_drop())).unwrap_err());
    assert_eq!(drops.get(), 2);
    drop(cell);
    assert_eq!(drops.get(), 3);
}

/// Empties the cell that it came from when it is dropped.
struct Visitor {
    cell: Weak<OptionCell<Box<Visitor>>>,
    visits: Count,
}

impl Drop for Visitor {
    fn drop(&mut self) {
        if let Some(cell) = self.cell.upgrade() {
            self.visits.add();
            drop(cell.take());
            assert!(!cell.is_some());
        }
    }
}

#[test]
fn destructors_use_their_own_cell() {
    let (cell, visits) = (Arc::new(OptionCell::empty()), Count::new());
    let visitor = || Box::new(Visitor { cell: Arc::downgrade(&cell), visits: visits.clone() });
    drop(cell.put(visitor()));
    drop(cell.put(visitor()));
    assert_eq!(visits.get(), 2, "the first took the second out");
    drop((cell.try_put(visitor()).is_ok(), cell.try_put(visitor())));
    assert_eq!(visits.get(), 4, "so did the refused one");
    assert!(cell.try_put(visitor()).is_ok());
    drop(cell.swap(None));
    assert_eq!(visits.get(), 5);
}

#[test]
fn destructors_panic() {
    struct Bomb(OnDrop);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert_ne!(self.0.touch(), 7, "on purpose");
        }
    }
    fn fails<R>(action: impl FnOnce() -> R) {
        assert!(catch_unwind(AssertUnwindSafe(action)).is_err());
    }
    let drops = Count::new();
    let bomb = || Box::new(Bomb(drops.on_drop()));
    let cell = OptionCell::new(bomb());
    fails(|| drop(cell.put(bomb())));
    fails(|| drop(cell.try_put(bomb())));
    fails(|| drop(cell.take()));
    assert!(!cell.is_some(), "each operation was over before a destructor ran");
    assert!(cell.try_put(bomb()).is_ok());
    fails(move || drop(cell));
    assert_eq!(drops.get(), 4);
}

#[test]
fn debug_shows_the_state() {
    let cell = OptionCell::empty();
    assert_eq!(format!("{cell:?}"), "OptionCell(None)");
    cell.put(Box::new(1));
    assert_eq!(format!("{cell:?}"), "OptionCell(Some(..))");
}

#[test]
fn race_put_against_take() {
    for _ in 0..ROUNDS {
        let drops = Count::new();
        let cell = Arc::new(OptionCell::empty());
        let (putter, counted) = (Arc::clone(&cell), drops.clone());
        let ((), taken) = together(
            move || assert!(putter.put(Box::new(counted.on_drop())).is_none()),
            move || cell.take().map(|value| value.touch()),
        );
        assert!(matches!(taken, None | Some(7)));
        assert_eq!(drops.get(), 1);
    }
}

#[test]
fn race_two_swap() {
    for _ in 0..ROUNDS {
        let drops = Count::new();
        let cell = Arc::new(OptionCell::new(Arc::new(drops.on_drop())));
        let other = Arc::clone(&cell);
        let (mine, yours) = (Arc::new(drops.on_drop()), Arc::new(drops.on_drop()));
        let (a, b) = together(move || cell.swap(Some(mine)), move || other.swap(Some(yours)));
        assert_eq!((a.unwrap().touch(), b.unwrap().touch()), (7, 7));
        assert_eq!(drops.get(), 3);
    }
}
