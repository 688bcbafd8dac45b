//! `OptionCell`: what goes in by one thread comes out, whole and once, by another.

#![cfg(callback_slot_loom)]

use callback_slot::OptionCell;
use loom::sync::Arc;
use loom::thread;
use loom_tests::{Count, OnDrop, Probe, model};

type Value = Box<OnDrop<Box<dyn FnMut() + Send>>>;

/// A value that reads its probe when it is dropped, and counts that.
fn value(drops: &Count) -> Value {
    let (probe, drops) = (Probe::new(), drops.clone());
    probe.write();
    Box::new(OnDrop(Box::new(move || {
        probe.read();
        drops.add();
    })))
}

#[test]
fn put_there_taken_here() {
    model(|| {
        let drops = Count::default();
        let cell = Arc::new(OptionCell::empty());
        let (other, counted) = (Arc::clone(&cell), drops.clone());
        let there = thread::spawn(move || assert!(other.put(value(&counted)).is_none()));
        drop(cell.take());
        there.join().unwrap();
        drop(cell);
        assert_eq!(drops.get(), 1);
    });
}

#[test]
fn put_there_replaced_here() {
    model(|| {
        let drops = Count::default();
        let cell = Arc::new(OptionCell::new(value(&drops)));
        let (other, counted) = (Arc::clone(&cell), drops.clone());
        let there = thread::spawn(move || drop(other.put(value(&counted))));
        drop(cell.put(value(&drops)));
        there.join().unwrap();
        assert_eq!(drops.get(), 2, "two of three were replaced");
        drop(cell);
        assert_eq!(drops.get(), 3);
    });
}

#[test]
fn tried_there_taken_here() {
    model(|| {
        let drops = Count::default();
        let cell = Arc::new(OptionCell::empty());
        let (other, counted) = (Arc::clone(&cell), drops.clone());
        let there = thread::spawn(move || assert!(other.try_put(value(&counted)).is_ok()));
        let seen = cell.is_some();
        let taken = cell.take();
        assert!(!seen || taken.is_some(), "nobody else takes it");
        drop(taken);
        there.join().unwrap();
        drop(cell);
        assert_eq!(drops.get(), 1);
    });
}

#[test]
fn two_try_and_one_takes() {
    model(|| {
        let drops = Count::default();
        let cell = Arc::new(OptionCell::empty());
        let tries: Vec<_> = (0..2)
            .map(|_| {
                let (cell, drops) = (Arc::clone(&cell), drops.clone());
                thread::spawn(move || drop(cell.try_put(value(&drops))))
            })
            .collect();
        drop(cell.take());
        for there in tries {
            there.join().unwrap();
        }
        drop(cell);
        assert_eq!(drops.get(), 2);
    });
}
