//! `CallbackSlot`: every pair and triple of holders' actions, arming against emptying, and the edge where ordering matters.

#![cfg(callback_slot_loom)]

use callback_slot::{Callback, CallbackSlot, CompleteError};
use loom::sync::Arc;
use loom::thread;
use loom_tests::{Count, OnDrop, Probe, model};

/// What a holder of the slot does. The first four try to empty it.
#[derive(Clone, Copy, PartialEq)]
enum Action {
    Complete,
    CompleteWith,
    Catch,
    TakeAndCall,
    TakeAndDrop,
    PollThenComplete,
    Leave,
}

/// One run: who arms what, and what must be true in the end.
#[derive(Clone)]
struct Scene {
    armed: Probe,
    holders: [Probe; 3],
    calls: Count,
    fallbacks: Count,
    drops: Count,
    wins: Count,
}

impl Scene {
    fn new() -> Self {
        Scene {
            armed: Probe::new(),
            holders: [Probe::new(), Probe::new(), Probe::new()],
            calls: Count::default(),
            fallbacks: Count::default(),
            drops: Count::default(),
            wins: Count::default(),
        }
    }

    /// A must-call callback that checks what it can see. Its value says who completes it; 9 is the fallback's.
    fn callback(&self) -> Callback<usize> {
        self.armed.write();
        let (called, dropped, fell_back) = (self.clone(), self.clone(), self.clone());
        let captured = OnDrop(move || {
            dropped.armed.read();
            dropped.drops.add();
        });
        let closure = move |completer: usize| {
            let _captured = &captured;
            called.armed.read();
            if let Some(holder) = called.holders.get(completer) {
                holder.read();
            }
            called.calls.add();
        };
        let fallback = move || {
            fell_back.armed.read();
            fell_back.fallbacks.add();
            9
        };
        Callback::must_call(closure, fallback)
    }

    fn act(&self, action: Action, me: usize, slot: Arc<CallbackSlot<usize>>) {
        self.holders[me].write();
        let won = match action {
            Action::Complete => slot.complete(me).is_ok(),
            Action::CompleteWith => slot.complete_with(|| me).is_ok(),
            Action::Catch => slot.complete_catching(me).is_ok(),
            Action::TakeAndCall => slot.take().map(|callback| callback.call(me)).is_some(),
            Action::TakeAndDrop => slot.take().map(drop).is_some(),
            Action::PollThenComplete => slot.is_armed() && slot.complete(me).is_ok(),
            Action::Leave => false,
        };
        if won {
            self.wins.add();
        }
    }
}

/// Runs the actions at the same time on one armed slot.
fn race(actions: &'static [Action]) {
    model(move || {
        let scene = Scene::new();
        let slot = Arc::new(CallbackSlot::from(scene.callback()));
        let others: Vec<_> = (1..actions.len())
            .map(|me| {
                let (scene, slot) = (scene.clone(), Arc::clone(&slot));
                thread::spawn(move || scene.act(actions[me], me, slot))
            })
            .collect();
        scene.act(actions[0], 0, slot);
        for other in others {
            other.join().unwrap();
        }
        let emptied = usize::from(actions.iter().any(|&action| action != Action::Leave));
        assert_eq!(scene.wins.get(), emptied, "exactly one winner, if anybody tried");
        assert_eq!((scene.calls.get(), scene.drops.get()), (1, 1), "called once, dropped once");
        assert!(scene.fallbacks.get() <= 1);
    });
}

macro_rules! races {
    ($($name:ident: $($action:ident),+;)+) => {
        $(#[test]
        fn $name() {
            race(&[$(Action::$action),+]);
        })+
    };
}

races! {
    pair_complete_complete: Complete, Complete;
    pair_complete_complete_with: Complete, CompleteWith;
    pair_complete_catch: Complete, Catch;
    pair_complete_take_and_call: Complete, TakeAndCall;
    pair_complete_take_and_drop: Complete, TakeAndDrop;
    pair_complete_poll: Complete, PollThenComplete;
    pair_complete_leave: Complete, Leave;
    pair_complete_with_complete_with: CompleteWith, CompleteWith;
    pair_complete_with_catch: CompleteWith, Catch;
    pair_complete_with_take_and_call: CompleteWith, TakeAndCall;
    pair_complete_with_take_and_drop: CompleteWith, TakeAndDrop;
    pair_complete_with_poll: CompleteWith, PollThenComplete;
    pair_complete_with_leave: CompleteWith, Leave;
    pair_catch_catch: Catch, Catch;
    pair_catch_take_and_call: Catch, TakeAndCall;
    pair_catch_take_and_drop: Catch, TakeAndDrop;
    pair_catch_poll: Catch, PollThenComplete;
    pair_catch_leave: Catch, Leave;
    pair_take_and_call_take_and_call: TakeAndCall, TakeAndCall;
    pair_take_and_call_take_and_drop: TakeAndCall, TakeAndDrop;
    pair_take_and_call_poll: TakeAndCall, PollThenComplete;
    pair_take_and_call_leave: TakeAndCall, Leave;
    pair_take_and_drop_take_and_drop: TakeAndDrop, TakeAndDrop;
    pair_take_and_drop_poll: TakeAndDrop, PollThenComplete;
    pair_take_and_drop_leave: TakeAndDrop, Leave;
    pair_poll_poll: PollThenComplete, PollThenComplete;
    pair_poll_leave: PollThenComplete, Leave;
    pair_leave_leave: Leave, Leave;
    triple_complete_complete_complete: Complete, Complete, Complete;
    triple_complete_take_and_drop_leave: Complete, TakeAndDrop, Leave;
    triple_complete_with_take_and_call_poll: CompleteWith, TakeAndCall, PollThenComplete;
    triple_leave_leave_leave: Leave, Leave, Leave;
    triple_complete_complete_leave: Complete, Complete, Leave;
    triple_complete_take_and_call_leave: Complete, TakeAndCall, Leave;
    triple_complete_poll_leave: Complete, PollThenComplete, Leave;
    triple_complete_leave_leave: Complete, Leave, Leave;
    triple_take_and_call_take_and_call_leave: TakeAndCall, TakeAndCall, Leave;
    triple_take_and_call_take_and_drop_leave: TakeAndCall, TakeAndDrop, Leave;
    triple_take_and_call_poll_leave: TakeAndCall, PollThenComplete, Leave;
    triple_take_and_call_leave_leave: TakeAndCall, Leave, Leave;
    triple_take_and_drop_take_and_drop_leave: TakeAndDrop, TakeAndDrop, Leave;
    triple_take_and_drop_poll_leave: TakeAndDrop, PollThenComplete, Leave;
    triple_take_and_drop_leave_leave: TakeAndDrop, Leave, Leave;
    triple_poll_poll_leave: PollThenComplete, PollThenComplete, Leave;
    triple_poll_leave_leave: PollThenComplete, Leave, Leave;
}

// With those above, every triple of five actions: completing in another way takes the same steps on the word.
#[cfg(callback_slot_loom_long)]
races! {
    triple_complete_complete_take_and_call: Complete, Complete, TakeAndCall;
    triple_complete_complete_take_and_drop: Complete, Complete, TakeAndDrop;
    triple_complete_complete_poll: Complete, Complete, PollThenComplete;
    triple_complete_take_and_call_take_and_call: Complete, TakeAndCall, TakeAndCall;
    triple_complete_take_and_call_take_and_drop: Complete, TakeAndCall, TakeAndDrop;
    triple_complete_take_and_call_poll: Complete, TakeAndCall, PollThenComplete;
    triple_complete_take_and_drop_take_and_drop: Complete, TakeAndDrop, TakeAndDrop;
    triple_complete_take_and_drop_poll: Complete, TakeAndDrop, PollThenComplete;
    triple_complete_poll_poll: Complete, PollThenComplete, PollThenComplete;
    triple_take_and_call_take_and_call_take_and_call: TakeAndCall, TakeAndCall, TakeAndCall;
    triple_take_and_call_take_and_call_take_and_drop: TakeAndCall, TakeAndCall, TakeAndDrop;
    triple_take_and_call_take_and_call_poll: TakeAndCall, TakeAndCall, PollThenComplete;
    triple_take_and_call_take_and_drop_take_and_drop: TakeAndCall, TakeAndDrop, TakeAndDrop;
    triple_take_and_call_take_and_drop_poll: TakeAndCall, TakeAndDrop, PollThenComplete;
    triple_take_and_call_poll_poll: TakeAndCall, PollThenComplete, PollThenComplete;
    triple_take_and_drop_take_and_drop_take_and_drop: TakeAndDrop, TakeAndDrop, TakeAndDrop;
    triple_take_and_drop_take_and_drop_poll: TakeAndDrop, TakeAndDrop, PollThenComplete;
    triple_take_and_drop_poll_poll: TakeAndDrop, PollThenComplete, PollThenComplete;
    triple_poll_poll_poll: PollThenComplete, PollThenComplete, PollThenComplete;
}

/// The edge where a missing Acquire or Release shows: armed on one thread, emptied on another.
fn edge(action: Action) {
    model(move || {
        let scene = Scene::new();
        let slot = Arc::new(CallbackSlot::empty());
        let armer = {
            let (scene, slot) = (scene.clone(), Arc::clone(&slot));
            thread::spawn(move || slot.arm(scene.callback()).map_err(drop).unwrap())
        };
        scene.act(action, 0, Arc::clone(&slot));
        armer.join().unwrap();
        let called = scene.calls.get();
        assert_eq!(called, scene.wins.get(), "without a winner it is still armed");
        drop(slot);
        assert_eq!((scene.calls.get(), scene.drops.get()), (1, 1));
    });
}

#[test]
fn edge_armed_there_completed_here() {
    edge(Action::Complete);
}

#[test]
fn edge_armed_there_taken_and_called_here() {
    edge(Action::TakeAndCall);
}

#[test]
fn edge_armed_there_taken_and_dropped_here() {
    edge(Action::TakeAndDrop);
}

#[test]
fn edge_armed_there_polled_here() {
    edge(Action::PollThenComplete);
}

/// Of two who arm, one gets its callback back; nobody's callback is lost.
#[test]
fn two_arm_one_slot() {
    model(|| {
        let (here, there) = (Scene::new(), Scene::new());
        let slot = Arc::new(CallbackSlot::empty());
        let other = {
            let (there, slot) = (there.clone(), Arc::clone(&slot));
            thread::spawn(move || slot.arm(there.callback()).is_ok())
        };
        let armed = slot.arm(here.callback()).is_ok();
        assert_ne!(armed, other.join().unwrap());
        here.holders[0].write();
        there.holders[0].write();
        slot.complete(0).unwrap();
        assert_eq!((here.calls.get(), there.calls.get()), (1, 1));
        assert_eq!(here.fallbacks.get(), usize::from(!armed));
    });
}

/// A slot that is found unarmed stays so: arming cannot be lost to a completion that came too early.
#[test]
fn arming_is_not_lost_to_an_early_completion() {
    model(|| {
        let scene = Scene::new();
        let slot = Arc::new(CallbackSlot::empty());
        let early = {
            let (scene, slot) = (scene.clone(), Arc::clone(&slot));
            thread::spawn(move || {
                scene.holders[1].write();
                slot.complete(1)
            })
        };
        slot.arm(scene.callback()).map_err(drop).expect("nobody else arms it");
        match early.join().unwrap() {
            Ok(()) => assert_eq!(slot.complete(2), Err(CompleteError::AlreadyCompleted(2))),
            Err(error) => {
                assert_eq!(error, CompleteError::NeverArmed(1));
                scene.holders[0].write();
                slot.complete(0).unwrap();
            }
        }
        assert_eq!((scene.calls.get(), scene.fallbacks.get()), (1, 0));
    });
}

/// Back to EMPTY by whoever is alone again, and once more: a second round is as good as the first.
#[test]
fn rearmed_after_a_race() {
    model(|| {
        let (first, second) = (Scene::new(), Scene::new());
        let mut slot = Arc::new(CallbackSlot::from(first.callback()));
        let other = {
            let (first, slot) = (first.clone(), Arc::clone(&slot));
            thread::spawn(move || first.act(Action::Complete, 1, slot))
        };
        first.act(Action::Complete, 0, Arc::clone(&slot));
        other.join().unwrap();
        let alone = Arc::get_mut(&mut slot).expect("the other has left");
        assert!(alone.rearm(second.callback()).is_none());
        let other = {
            let (second, slot) = (second.clone(), Arc::clone(&slot));
            thread::spawn(move || second.act(Action::TakeAndCall, 1, slot))
        };
        second.act(Action::Complete, 0, slot);
        other.join().unwrap();
        assert_eq!((first.wins.get(), second.wins.get()), (1, 1));
        assert_eq!((first.calls.get(), second.calls.get()), (1, 1));
    });
}

/// The callback tries every operation on its own slot while another thread does too.
#[test]
fn callback_reenters_its_slot() {
    model(|| {
        let slot = Arc::new(CallbackSlot::empty());
        let calls = Count::default();
        let (own, counted) = (Arc::clone(&slot), calls.clone());
        let callback = Callback::new(move |value: usize| {
            assert!(!own.is_armed());
            assert_eq!(own.complete(value), Err(CompleteError::AlreadyCompleted(value)));
            assert!(own.take().is_none());
            assert!(own.arm(Callback::new(|_| ())).is_err());
            counted.add();
        });
        slot.arm(callback).map_err(drop).unwrap();
        let other = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.complete(1).is_ok())
        };
        let here = slot.complete(0).is_ok();
        assert_ne!(here, other.join().unwrap());
        assert_eq!(calls.get(), 1);
    });
}
