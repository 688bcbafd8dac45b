//! `InPlaceSlot`: the closure lies in the owner's memory, and one of two threads moves it out.

#![cfg(callback_slot_loom)]

use callback_slot::InPlaceSlot;
use loom::sync::Arc;
use loom::thread;
use loom_tests::{Count, OnDrop, Probe, model};

struct Scene {
    made: Probe,
    calls: Count,
    drops: Count,
}

fn scene() -> (Scene, impl FnOnce(Probe) + Send + 'static) {
    let scene = Scene { made: Probe::new(), calls: Count::default(), drops: Count::default() };
    scene.made.write();
    let (made, calls, drops) = (scene.made.clone(), scene.calls.clone(), scene.drops.clone());
    let captured = OnDrop(move || drops.add());
    let closure = move |completer: Probe| {
        let _captured = &captured;
        made.read();
        completer.read();
        calls.add();
    };
    (scene, closure)
}

/// A probe that its thread has just written.
fn written() -> Probe {
    let probe = Probe::new();
    probe.write();
    probe
}

/// Both complete a slot with room for `WORDS` words: in place, or on the heap when there is too little.
fn race<const WORDS: usize>(fits: bool) {
    model(move || {
        let (scene, closure) = scene();
        assert_eq!(InPlaceSlot::<Probe, WORDS>::fits::<[usize; 4]>(), fits);
        let slot = Arc::new(InPlaceSlot::<Probe, WORDS>::new(closure));
        let other = Arc::clone(&slot);
        let there = thread::spawn(move || other.complete_with(written).is_ok());
        let here = slot.complete(written()).is_ok();
        assert_ne!(here, there.join().unwrap());
        assert_eq!((scene.calls.get(), scene.drops.get()), (1, 1));
    });
}

#[test]
fn two_complete_in_place() {
    race::<8>(true);
}

#[test]
fn two_complete_beyond_the_place() {
    race::<1>(false);
}

#[test]
fn completed_there_rearmed_here() {
    model(|| {
        let (first, closure) = scene();
        let mut slot = Arc::new(InPlaceSlot::<Probe>::new(closure));
        let other = Arc::clone(&slot);
        let there = thread::spawn(move || other.complete(written()).is_ok());
        let (second, closure) = scene();
        // Only when the other has left, which may be before or after.
        let rearmed = Arc::get_mut(&mut slot).map(|alone| alone.rearm(closure)).is_some();
        assert!(there.join().unwrap());
        drop(slot);
        assert_eq!((first.calls.get(), first.drops.get()), (1, 1));
        assert_eq!((second.calls.get(), second.drops.get()), (0, 1));
        let _ = rearmed;
    });
}

#[test]
fn dropped_by_the_last_of_two() {
    model(|| {
        let (scene, closure) = scene();
        let made = scene.made.clone();
        let slot = Arc::new(InPlaceSlot::<Probe>::must_call(closure, written));
        let other = Arc::clone(&slot);
        let there = thread::spawn(move || drop(other));
        drop(slot);
        there.join().unwrap();
        made.read();
        assert_eq!((scene.calls.get(), scene.drops.get()), (1, 1));
    });
}
