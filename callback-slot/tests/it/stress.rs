//! Crowds that walk along rows of slots, with nothing between the threads but the slots themselves.
//!
//! Long and unordered, where `race` and `matrix` are short and in step: what ThreadSanitizer wants (`tsan.sh`). All that
//! travels is plain memory, and the counters are relaxed, so no order comes from the test itself once a walk has begun.

use crate::support::{Count, OnDrop};
use callback_slot::{Callback, CallbackSlot, InPlaceSlot, OptionCell, SharedSlot};
use std::array;
use std::sync::Barrier;
use std::thread;

const CROWD: usize = 3;
const WALKS: usize = if cfg!(miri) { 2 } else { 40 };
const PLACES: usize = if cfg!(miri) { 8 } else { 500 };

/// What a slot's callback gets: memory of the completer's own.
type Value = Box<usize>;

/// Each of a crowd gets its `walker` and visits all places with it, starting at the same time.
fn walk<W: Send>(walkers: [W; CROWD], visit: impl Fn(&mut W, usize, u64) + Sync) {
    let start = Barrier::new(CROWD);
    thread::scope(|scope| {
        for (me, mut walker) in walkers.into_iter().enumerate() {
            let (start, visit) = (&start, &visit);
            scope.spawn(move || {
                start.wait();
                for place in 0..PLACES {
                    visit(&mut walker, place, draw(me, place));
                }
            });
        }
    });
}

/// A number that looks drawn by lot and is the same in every run.
fn draw(me: usize, place: usize) -> u64 {
    let mut mixed = (me * PLACES + place + 1) as u64;
    for _ in 0..3 {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    mixed >> 32
}

/// What became of the callbacks of a row.
#[derive(Clone, Default)]
struct Ledger {
    made: Count,
    dropped: Count,
    called: Count,
    must_calls: Count,
    must_called: Count,
    wins: Count,
}

impl Ledger {
    fn capture(&self) -> OnDrop {
        self.made.add();
        self.dropped.on_drop()
    }

    fn plain(&self) -> impl FnOnce(Value) + Send + 'static + use<> {
        let (captured, called) = (self.capture(), self.called.clone());
        move |value| {
            assert_eq!(*value + captured.touch(), 8);
            called.add();
        }
    }

    fn must(&self) -> (impl FnOnce(Value) + Send + 'static, impl FnOnce() -> Value + Send + 'static) {
        self.must_calls.add();
        let (captured, in_fallback, called) = (self.capture(), self.capture(), self.must_called.clone());
        let closure = move |value: Value| {
            assert_eq!(*value + captured.touch(), 8);
            called.add();
        };
        (closure, move || Box::new(in_fallback.touch() - 6))
    }

    fn callback(&self, must: bool) -> Callback<Value> {
        if must {
            let (closure, fallback) = self.must();
            Callback::must_call(closure, fallback)
        } else {
            Callback::new(self.plain())
        }
    }

    /// Notes that somebody won.
    fn won(&self, won: bool) {
        if won {
            self.wins.add();
        }
    }

    /// Everything is dropped once, each must-call was called once, and nobody else was called without a winner.
    fn close(&self) {
        assert!(self.made.get() >= PLACES);
        assert_eq!(self.dropped.get(), self.made.get());
        assert_eq!(self.must_called.get(), self.must_calls.get());
        assert!(self.called.get() <= self.wins.get());
        assert!(self.wins.get() <= self.called.get() + self.must_called.get());
    }
}

/// Completes a slot of any form in one of the ways that all have.
macro_rules! complete {
    ($slot:expr, $lot:expr) => {
        match $lot % 3 {
            0 => $slot.complete(Box::new(1)).is_ok(),
            1 => $slot.complete_with(|| Box::new(1)).is_ok(),
            #[cfg(feature = "std")]
            _ => $slot.complete_catching(Box::new(1)).is_ok_and(|outcome| outcome.is_returned()),
            #[cfg(not(feature = "std"))]
            _ => $slot.complete(Box::new(1)).is_ok(),
        }
    };
}

/// Armed by whoever comes first, and emptied by whoever comes next: by completing, by taking, or by the end of the row.
#[test]
fn stress_slots_that_a_crowd_arms_and_empties() {
    for _ in 0..WALKS {
        let ledger = Ledger::default();
        let row: Vec<CallbackSlot<Value>> = (0..PLACES).map(|_| CallbackSlot::empty()).collect();
        walk([&row; CROWD], |row, place, lot| {
            let slot = &row[place];
            drop(slot.arm(ledger.callback(lot & 1 == 0)));
            match lot / 2 % 4 {
                0 => ledger.won(complete!(slot, lot / 8)),
                1 => ledger.won(slot.take().map(|callback| callback.call(Box::new(1))).is_some()),
                2 => drop(slot.take()),
                _ => {}
            }
        });
        drop(row);
        ledger.close();
    }
}

/// Each walker has a handle to every slot, makes further ones, and lets all of them go.
#[test]
fn stress_handles_that_complete_and_go() {
    for _ in 0..WALKS {
        let ledger = Ledger::default();
        let row: Vec<SharedSlot<Value>> = (0..PLACES)
            .map(|place| match place % 2 {
                0 => SharedSlot::new(ledger.plain()),
                _ => {
                    let (closure, fallback) = ledger.must();
                    SharedSlot::must_call(closure, fallback)
                }
            })
            .collect();
        let walkers = array::from_fn(|_| row.iter().cloned().map(Some).collect::<Vec<_>>());
        drop(row);
        walk(walkers, |handles, place, lot| {
            let handle = handles[place].take().expect("each place is visited once");
            let further = (lot & 1 == 0).then(|| handle.clone());
            if lot & 2 == 0 {
                ledger.won(complete!(handle, lot / 8));
            }
            drop(handle);
            if let Some(further) = further {
                if lot & 4 == 0 {
                    ledger.won(complete!(further, lot / 8));
                }
            }
        });
        ledger.close();
    }
}

fn slots_in_place<const WORDS: usize>() {
    for _ in 0..WALKS {
        let ledger = Ledger::default();
        let row: Vec<InPlaceSlot<Value, WORDS>> = (0..PLACES)
            .map(|place| match place % 2 {
                0 => InPlaceSlot::new(ledger.plain()),
                _ => {
                    let (closure, fallback) = ledger.must();
                    InPlaceSlot::must_call(closure, fallback)
                }
            })
            .collect();
        walk([&row; CROWD], |row, place, lot| {
            if row[place].is_armed() && lot & 1 == 0 {
                ledger.won(complete!(row[place], lot / 2));
            }
        });
        drop(row);
        ledger.close();
    }
}

#[test]
fn stress_slots_in_place() {
    slots_in_place::<8>();
}

#[test]
fn stress_slots_without_room() {
    slots_in_place::<0>();
}

#[test]
fn stress_option_cells() {
    for _ in 0..WALKS {
        let ledger = Ledger::default();
        let row: Vec<OptionCell<Box<OnDrop>>> = (0..PLACES).map(|_| OptionCell::empty()).collect();
        walk([&row; CROWD], |row, place, lot| {
            let (cell, mine) = (&row[place], Box::new(ledger.capture()));
            let out = match lot % 3 {
                0 => cell.put(mine),
                1 => cell.try_put(mine).err(),
                _ => cell.swap(Some(mine)),
            };
            assert!(out.is_none_or(|value| value.touch() == 7));
            if lot / 4 % 2 == 0 {
                assert!(cell.take().is_none_or(|value| value.touch() == 7));
            }
        });
        drop(row);
        ledger.close();
    }
}

/// One walker has the callbacks, another the replies, the third only looks on.
#[cfg(feature = "wait")]
#[test]
fn stress_replies() {
    use callback_slot::{reply, Reply, WaitError};
    use std::time::Duration;

    enum Walker {
        Caller(Vec<Option<Callback<OnDrop>>>),
        Waiter(Vec<Option<Reply<OnDrop>>>),
        Bystander,
    }

    for _ in 0..WALKS {
        let ledger = Ledger::default();
        let (callbacks, replies) =
            (0..PLACES).map(|_| reply()).map(|(callback, reply)| (Some(callback), Some(reply))).unzip();
        let walkers = [Walker::Caller(callbacks), Walker::Waiter(replies), Walker::Bystander];
        walk(walkers, |walker, place, lot| match walker {
            Walker::Caller(callbacks) => match callbacks[place].take() {
                Some(callback) if lot % 8 != 0 => callback.call(ledger.capture()),
                uncalled => drop(uncalled),
            },
            Walker::Waiter(replies) => {
                let reply = replies[place].take().expect("each place is visited once");
                let value = match lot % 4 {
                    0 => reply.try_into_value().ok().and_then(Result::ok),
                    1 => match reply.wait_timeout(Duration::from_micros(lot % 64)) {
                        Err(WaitError::TimedOut(reply)) => reply.wait().ok(),
                        other => other.ok(),
                    },
                    _ => reply.wait().ok(),
                };
                assert!(value.is_none_or(|value| value.touch() == 7));
            }
            // It gives no time away either: on a busy machine that is a long wait for each place.
            Walker::Bystander => {}
        });
        assert!(ledger.made.get() > 0);
        assert_eq!(ledger.dropped.get(), ledger.made.get());
    }
}
