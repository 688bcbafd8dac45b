//! The operations whose instructions are counted: those of the slot, and one write through a pipeline in memory.

use std::hint::black_box;

use callback_slot::{Callback, CallbackSlot, InPlaceSlot, SharedSlot, reply};
use storage_pipeline::CompletionMode;

use crate::{in_memory, round::Failure};

/// Something to do over and over.
pub struct Case {
    /// As it stands in the baseline.
    pub name: String,
    /// Numbers of times to do it in the short and in the long run, whose difference is counted.
    pub times: [u64; 2],
    work: Work,
}

/// One operation of a slot, told apart from the others by a number.
type Operation = fn(u64);

enum Work {
    Slot(Operation),
    Put(CompletionMode),
}

impl Case {
    /// Does the work so many times.
    ///
    /// # Errors
    /// The pipeline does not open, or a put is not applied.
    pub fn run(&self, times: u64) -> Result<(), Failure> {
        match self.work {
            Work::Slot(work) => {
                (0..times).for_each(work);
                Ok(())
            }
            Work::Put(mode) => put(mode, times),
        }
    }
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Case> {
    let slot = |(name, work): (&str, Operation)| Case {
        name: format!("slot/{name}"),
        times: [2_000, 12_000],
        work: Work::Slot(work),
    };
    let put = |mode: CompletionMode| Case {
        name: format!("put/{mode}"),
        times: [500, 2_500],
        work: Work::Put(mode),
    };
    SLOT.into_iter().map(slot).chain(CompletionMode::ALL.into_iter().map(put)).collect()
}

/// What each of the slot's forms does in its life.
const SLOT: [(&str, Operation); 9] = [
    ("callback called", |i| black_box(Callback::new(move |value: u64| sink(value ^ i))).call(i)),
    ("completed", |i| done(CallbackSlot::new(move |value: u64| sink(value ^ i)).complete(i).is_ok())),
    ("completed, 64 bytes captured", |i| {
        let captured = [i; 8];
        done(
            CallbackSlot::new(move |value: u64| sink(captured.iter().fold(value, |all, one| all ^ one)))
                .complete(i)
                .is_ok(),
        );
    }),
    ("completed, nothing captured", |i| {
        done(CallbackSlot::new(|value: u64| sink(value)).complete(i).is_ok())
    }),
    ("completed twice", |i| {
        let slot = CallbackSlot::new(move |value: u64| sink(value ^ i));
        done(slot.complete(i).is_ok());
        done(slot.complete(i).is_err());
    }),
    ("must be called, dropped", |i| {
        drop(CallbackSlot::must_call(move |value: u64| sink(value ^ i), move || i))
    }),
    ("shared by two, completed", |i| {
        let one = SharedSlot::new(move |value: u64| sink(value ^ i));
        let other = one.clone();
        done(one.complete(i).is_ok());
        done(!other.is_armed());
    }),
    ("in place, completed", |i| {
        done(InPlaceSlot::<u64>::new(move |value: u64| sink(value ^ i)).complete(i).is_ok())
    }),
    ("reply, taken", |i| {
        let (callback, reply) = reply();
        callback.call(i);
        done(reply.wait().is_ok());
    }),
];

fn sink(value: u64) {
    black_box(value);
}

fn done(done: bool) {
    assert!(black_box(done));
}

/// Puts one after the other, each settled before the next.
fn put(mode: CompletionMode, times: u64) -> Result<(), Failure> {
    let storage = in_memory::open(mode)?;
    for _ in 0..times {
        let outcome = storage.raw_put(b"key", &[7; 150]);
        if !outcome.is_applied() {
            return Err(format!("{mode}: a put was not applied: {outcome:?}").into());
        }
    }
    Ok(())
}
