//! `SharedSlot`: every pair and every triple of handles' actions, with the node's memory tracked.

#![cfg(callback_slot_loom)]

use callback_slot::{CompleteError, SharedSlot};
use loom::thread;
use loom_tests::{Count, OnDrop, Probe, bounded_model, model};

/// What the owner of a handle does, before the handle goes.
#[derive(Clone, Copy, PartialEq)]
enum Action {
    Complete,
    CompleteWith,
    Catch,
    PollThenComplete,
    CloneThenComplete,
    CloneThenLeave,
    Leave,
}

impl Action {
    fn completes(self) -> bool {
        !matches!(self, Action::Leave | Action::CloneThenLeave)
    }

    fn clones(self) -> bool {
        matches!(self, Action::CloneThenComplete | Action::CloneThenLeave)
    }
}

/// The fallback's value; the others say which handle completed.
const FALLBACK: usize = 9;

#[derive(Clone)]
struct Scene {
    made: Probe,
    owners: [Probe; 3],
    calls: Count,
    fallbacks: Count,
    drops: Count,
    wins: Count,
}

impl Scene {
    fn new() -> Self {
        Scene {
            made: Probe::new(),
            owners: [Probe::new(), Probe::new(), Probe::new()],
            calls: Count::default(),
            fallbacks: Count::default(),
            drops: Count::default(),
            wins: Count::default(),
        }
    }

    /// What the last owner sees when nobody has completed: everything, from every owner.
    fn read_all(&self, owners: usize) {
        self.made.read();
        self.owners[..owners].iter().for_each(Probe::read);
    }

    fn closure(&self, owners: usize) -> impl FnOnce(usize) + Send + 'static {
        let (called, dropped) = (self.clone(), self.clone());
        let captured = OnDrop(move || {
            if dropped.calls.get() == 0 {
                dropped.read_all(owners);
            }
            dropped.drops.add();
        });
        move |completer: usize| {
            let _captured = &captured;
            called.made.read();
            match completer {
                FALLBACK => called.read_all(owners),
                owner => called.owners[owner].read(),
            }
            called.calls.add();
        }
    }

    fn fallback(&self, owners: usize) -> impl FnOnce() -> usize + Send + 'static {
        let scene = self.clone();
        move || {
            scene.read_all(owners);
            scene.fallbacks.add();
            FALLBACK
        }
    }

    fn act(&self, action: Action, me: usize, slot: SharedSlot<usize>) {
        self.owners[me].write();
        let won = match action {
            Action::Complete => slot.complete(me).is_ok(),
            Action::CompleteWith => slot.complete_with(|| me).is_ok(),
            Action::Catch => slot.complete_catching(me).is_ok(),
            Action::PollThenComplete => slot.is_armed() && slot.complete(me).is_ok(),
            Action::CloneThenComplete => {
                let clone = slot.clone();
                drop(slot);
                clone.complete(me).is_ok()
            }
            Action::CloneThenLeave => {
                drop(slot.clone());
                false
            }
            Action::Leave => false,
        };
        if won {
            self.wins.add();
        }
    }
}

/// Three owners of whom one clones its handle have too many interleavings: there, of at most this many preemptions.
const MOST_PREEMPTIONS: usize = 3;

fn race(actions: &'static [Action], must_call: bool) {
    let body = move || {
        let scene = Scene::new();
        scene.made.write();
        let owners = actions.len();
        let slot = if must_call {
            SharedSlot::must_call(scene.closure(owners), scene.fallback(owners))
        } else {
            SharedSlot::new(scene.closure(owners))
        };
        let others: Vec<_> = (1..owners)
            .map(|me| {
                let (scene, slot) = (scene.clone(), slot.clone());
                thread::spawn(move || scene.act(actions[me], me, slot))
            })
            .collect();
        scene.act(actions[0], 0, slot);
        for other in others {
            other.join().unwrap();
        }
        let completed = usize::from(actions.iter().any(|action| action.completes()));
        let fell_back = usize::from(must_call) * (1 - completed);
        assert_eq!(scene.wins.get(), completed, "exactly one winner, if anybody tried");
        assert_eq!((scene.calls.get(), scene.fallbacks.get()), (completed + fell_back, fell_back));
        assert_eq!(scene.drops.get(), 1);
    };
    if actions.len() > 2 && actions.iter().any(|action| action.clones()) {
        bounded_model(MOST_PREEMPTIONS, body);
    } else {
        model(body);
    }
}

macro_rules! races {
    ($plain:ident, $must_call:ident; $($name:ident: $($action:ident),+;)+) => {
        mod $plain {
            use super::{Action, race};
            $(#[test]
            fn $name() {
                race(&[$(Action::$action),+], false);
            })+
        }
        mod $must_call {
            use super::{Action, race};
            $(#[test]
            fn $name() {
                race(&[$(Action::$action),+], true);
            })+
        }
    };
}

races! {
    plain, must_call;
    pair_complete_complete: Complete, Complete;
    pair_complete_complete_with: Complete, CompleteWith;
    pair_complete_catch: Complete, Catch;
    pair_complete_poll: Complete, PollThenComplete;
    pair_complete_clone_complete: Complete, CloneThenComplete;
    pair_complete_clone_leave: Complete, CloneThenLeave;
    pair_complete_leave: Complete, Leave;
    pair_complete_with_complete_with: CompleteWith, CompleteWith;
    pair_complete_with_catch: CompleteWith, Catch;
    pair_complete_with_poll: CompleteWith, PollThenComplete;
    pair_complete_with_clone_complete: CompleteWith, CloneThenComplete;
    pair_complete_with_clone_leave: CompleteWith, CloneThenLeave;
    pair_complete_with_leave: CompleteWith, Leave;
    pair_catch_catch: Catch, Catch;
    pair_catch_poll: Catch, PollThenComplete;
    pair_catch_clone_complete: Catch, CloneThenComplete;
    pair_catch_clone_leave: Catch, CloneThenLeave;
    pair_catch_leave: Catch, Leave;
    pair_poll_poll: PollThenComplete, PollThenComplete;
    pair_poll_clone_complete: PollThenComplete, CloneThenComplete;
    pair_poll_clone_leave: PollThenComplete, CloneThenLeave;
    pair_poll_leave: PollThenComplete, Leave;
    pair_clone_complete_clone_complete: CloneThenComplete, CloneThenComplete;
    pair_clone_complete_clone_leave: CloneThenComplete, CloneThenLeave;
    pair_clone_complete_leave: CloneThenComplete, Leave;
    pair_clone_leave_clone_leave: CloneThenLeave, CloneThenLeave;
    pair_clone_leave_leave: CloneThenLeave, Leave;
    pair_leave_leave: Leave, Leave;
    triple_complete_complete_complete: Complete, Complete, Complete;
    triple_complete_complete_leave: Complete, Complete, Leave;
    triple_complete_poll_leave: Complete, PollThenComplete, Leave;
    triple_complete_leave_leave: Complete, Leave, Leave;
    triple_poll_poll_leave: PollThenComplete, PollThenComplete, Leave;
    triple_poll_leave_leave: PollThenComplete, Leave, Leave;
    triple_leave_leave_leave: Leave, Leave, Leave;
}

// With those above, every triple of five actions: completing in another way takes the same steps.
#[cfg(callback_slot_loom_long)]
races! {
    long_plain, long_must_call;
    triple_complete_complete_poll: Complete, Complete, PollThenComplete;
    triple_complete_complete_clone_complete: Complete, Complete, CloneThenComplete;
    triple_complete_complete_clone_leave: Complete, Complete, CloneThenLeave;
    triple_complete_poll_poll: Complete, PollThenComplete, PollThenComplete;
    triple_complete_poll_clone_complete: Complete, PollThenComplete, CloneThenComplete;
    triple_complete_poll_clone_leave: Complete, PollThenComplete, CloneThenLeave;
    triple_complete_clone_complete_clone_complete: Complete, CloneThenComplete, CloneThenComplete;
    triple_complete_clone_complete_clone_leave: Complete, CloneThenComplete, CloneThenLeave;
    triple_complete_clone_complete_leave: Complete, CloneThenComplete, Leave;
    triple_complete_clone_leave_clone_leave: Complete, CloneThenLeave, CloneThenLeave;
    triple_complete_clone_leave_leave: Complete, CloneThenLeave, Leave;
    triple_poll_poll_poll: PollThenComplete, PollThenComplete, PollThenComplete;
    triple_poll_poll_clone_complete: PollThenComplete, PollThenComplete, CloneThenComplete;
    triple_poll_poll_clone_leave: PollThenComplete, PollThenComplete, CloneThenLeave;
    triple_poll_clone_complete_clone_complete: PollThenComplete, CloneThenComplete, CloneThenComplete;
    triple_poll_clone_complete_clone_leave: PollThenComplete, CloneThenComplete, CloneThenLeave;
    triple_poll_clone_complete_leave: PollThenComplete, CloneThenComplete, Leave;
    triple_poll_clone_leave_clone_leave: PollThenComplete, CloneThenLeave, CloneThenLeave;
    triple_poll_clone_leave_leave: PollThenComplete, CloneThenLeave, Leave;
    triple_clone_complete_clone_complete_clone_complete: CloneThenComplete, CloneThenComplete, CloneThenComplete;
    triple_clone_complete_clone_complete_clone_leave: CloneThenComplete, CloneThenComplete, CloneThenLeave;
    triple_clone_complete_clone_complete_leave: CloneThenComplete, CloneThenComplete, Leave;
    triple_clone_complete_clone_leave_clone_leave: CloneThenComplete, CloneThenLeave, CloneThenLeave;
    triple_clone_complete_clone_leave_leave: CloneThenComplete, CloneThenLeave, Leave;
    triple_clone_complete_leave_leave: CloneThenComplete, Leave, Leave;
    triple_clone_leave_clone_leave_clone_leave: CloneThenLeave, CloneThenLeave, CloneThenLeave;
    triple_clone_leave_clone_leave_leave: CloneThenLeave, CloneThenLeave, Leave;
    triple_clone_leave_leave_leave: CloneThenLeave, Leave, Leave;
}

/// The callback drops a further handle to its own slot, while another thread drops its own: the node outlives both.
#[test]
fn callback_drops_a_handle_to_its_own_slot() {
    model(|| {
        let (sender, receiver) = std::sync::mpsc::channel::<SharedSlot<usize>>();
        let calls = Count::default();
        let counted = calls.clone();
        let slot = SharedSlot::new(move |_: usize| {
            let own = receiver.try_recv().unwrap();
            assert_eq!(own.complete(2), Err(CompleteError::AlreadyCompleted(2)));
            drop(own);
            counted.add();
        });
        sender.send(slot.clone()).unwrap();
        let other = slot.clone();
        let there = thread::spawn(move || other.complete(1).is_ok());
        let here = slot.complete(0).is_ok();
        drop(slot);
        assert_ne!(here, there.join().unwrap());
        assert_eq!(calls.get(), 1);
    });
}

/// Three parties as in a pipeline: a scheduler that times out, an apply pool that succeeds, a proposal that is dropped.
#[test]
fn timeout_apply_and_dropped_proposal() {
    model(|| {
        let scene = Scene::new();
        scene.made.write();
        let slot = SharedSlot::must_call(scene.closure(3), scene.fallback(3));
        let timer = {
            let (scene, slot) = (scene.clone(), slot.clone());
            thread::spawn(move || scene.act(Action::CompleteWith, 1, slot))
        };
        let apply = {
            let (scene, slot) = (scene.clone(), slot.clone());
            thread::spawn(move || scene.act(Action::Complete, 2, slot))
        };
        scene.act(Action::Leave, 0, slot);
        timer.join().unwrap();
        apply.join().unwrap();
        assert_eq!((scene.wins.get(), scene.calls.get(), scene.fallbacks.get()), (1, 1, 0));
    });
}
