//! Which contender runs in which case. One that is missing from a case cannot do its work:
//!
//! * a channel's receiver has one owner, so nobody races for it, loses on it or shares it (crossbeam's can be shared);
//! * `callback_cell`, the two-word cell and the double boxes cannot tell whether they still hold a closure without taking
//!   it out. The receivers of `oneshot`, tokio and crossbeam can, but are not measured in it;
//! * `async-oneshot` forgets a message that was sent and never received: the closure is not even dropped, so nothing can
//!   answer in its place.

use std::sync::Arc;

use callback_slot::{CallbackSlot, SharedSlot};

use crate::{
    cases::{self, Case, Job},
    contender::{HandOver, Poll, Slot},
    limit::Limit,
    rivals::{self, InPlace},
};

const ASYNC_ONESHOT: &str = "async-oneshot, closure";

/// A contender in a case.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What is measured.
    pub case: Case,
    /// Who runs.
    pub rival: &'static str,
    /// Bytes of what the completing side holds, without what lies on the heap.
    pub bytes: usize,
    /// The loop.
    pub job: Job,
}

/// All contenders in all cases they can do, the baselines among them.
#[must_use]
pub fn roster() -> Vec<Entry> {
    let mut entries = Vec::new();
    let list = &mut entries;
    add_slot::<Limit>(list, "limit", "Arc of the limit");
    add_slot::<CallbackSlot<u64>>(list, "CallbackSlot", "Arc of CallbackSlot");
    add_hand_over::<SharedSlot<u64>>(list, "SharedSlot");
    add_shared::<SharedSlot<u64>>(list, "SharedSlot");
    add_slot::<InPlace<8>>(list, "InPlaceSlot, 64 B", "Arc of InPlaceSlot, 64 B");
    add_only::<InPlace<1>>(list, "InPlaceSlot, 8 B", &[Case::Life0, Case::Life8, Case::HandOver]);
    add_only::<InPlace<32>>(list, "InPlaceSlot, 256 B", &[Case::Life256]);
    add_only::<Limit<true>>(list, "limit, freed after the call", &[Case::Life8, Case::Life64, Case::Life256]);
    add_hand_over::<Arc<Limit>>(list, "Arc of the limit");
    add_slot::<rivals::CallbackCell>(list, "callback_cell", "Arc of callback_cell");
    add_slot::<rivals::TwoWordCell>(list, "AtomicCell, two words", "Arc of AtomicCell, two words");
    add_slot::<rivals::ParkingLot>(list, "parking_lot Mutex", "Arc of parking_lot Mutex");
    add_slot::<rivals::StdMutex>(list, "std Mutex", "Arc of std Mutex");
    add_slot::<rivals::AtomicTakeCell>(list, "atomic-take", "Arc of atomic-take");
    add_slot::<rivals::DoubleBoxCell>(list, "AtomicCell, double box", "Arc of AtomicCell, double box");
    add_slot::<rivals::AtomicBoxCell>(list, "atomicbox, double box", "Arc of atomicbox, double box");
    add_slot::<rivals::ArcSwapCell>(list, "arc-swap", "Arc of arc-swap");
    add_slot::<rivals::CrossbeamCarry>(list, "crossbeam-channel, closure", "Arc of crossbeam-channel");
    add_hand_over::<rivals::OneshotCarry>(list, "oneshot, closure");
    add_hand_over::<rivals::TokioCarry>(list, "tokio oneshot, closure");
    add_hand_over::<rivals::CattyCarry>(list, "catty, closure");
    add_hand_over::<rivals::FuturesCarry>(list, "futures oneshot, closure");
    add_hand_over::<rivals::AsyncOneshotCarry>(list, ASYNC_ONESHOT);
    add_hand_over::<rivals::MpscCarry>(list, "std mpsc, closure");
    add_hand_over::<rivals::OneshotTravel>(list, "oneshot, result");
    add_hand_over::<rivals::TokioTravel>(list, "tokio oneshot, result");
    add_hand_over::<rivals::CattyTravel>(list, "catty, result");
    add_hand_over::<rivals::FuturesTravel>(list, "futures oneshot, result");
    add_hand_over::<rivals::AsyncOneshotTravel>(list, "async-oneshot, result");
    add_hand_over::<rivals::MpscTravel>(list, "std mpsc, result");
    add_hand_over::<rivals::CrossbeamTravel>(list, "crossbeam-channel, result");
    add_poll::<Limit>(list, "limit");
    add_poll::<CallbackSlot<u64>>(list, "CallbackSlot");
    add_poll::<SharedSlot<u64>>(list, "SharedSlot");
    add_poll::<InPlace<8>>(list, "InPlaceSlot, 64 B");
    add_poll::<rivals::ParkingLot>(list, "parking_lot Mutex");
    add_poll::<rivals::StdMutex>(list, "std Mutex");
    add_poll::<rivals::AtomicTakeCell>(list, "atomic-take");
    add_poll::<rivals::ArcSwapCell>(list, "arc-swap");
    entries.retain(|entry| (entry.case, entry.rival) != (Case::MustCallDrop, ASYNC_ONESHOT));
    entries
}

fn add(list: &mut Vec<Entry>, case: Case, rival: &'static str, bytes: usize, job: Job) {
    list.push(Entry { case, rival, bytes, job });
}

fn add_slot<S: Slot>(list: &mut Vec<Entry>, rival: &'static str, shared: &'static str) {
    add_hand_over::<S>(list, rival);
    add_contended::<S>(list, rival);
    add_handles::<Arc<S>>(list, shared);
}

/// A slot that counts its handles itself.
fn add_shared<S: Slot + Clone>(list: &mut Vec<Entry>, rival: &'static str) {
    add_contended::<S>(list, rival);
    add_handles::<S>(list, rival);
}

fn add_contended<S: Slot>(list: &mut Vec<Entry>, rival: &'static str) {
    add(list, Case::Lose, rival, size_of::<S>(), cases::lose::<S>);
    add(list, Case::LoseByTwo, rival, size_of::<S>(), cases::lose_by_two::<S>);
    add(list, Case::Race, rival, size_of::<S>(), cases::race::<S>);
}

fn add_handles<S: Slot + Clone>(list: &mut Vec<Entry>, rival: &'static str) {
    add(list, Case::SharedLife, rival, size_of::<S>(), cases::shared_life::<S>);
    add(list, Case::SharedRace, rival, size_of::<S>(), cases::race_with_handles::<S>);
}

fn add_hand_over<H: HandOver>(list: &mut Vec<Entry>, rival: &'static str) {
    let bytes = size_of::<H::Far>();
    add(list, Case::Life0, rival, bytes, cases::life::<H, 0>);
    add(list, Case::Life8, rival, bytes, cases::life::<H, 1>);
    add(list, Case::Life64, rival, bytes, cases::life::<H, 8>);
    add(list, Case::Life256, rival, bytes, cases::life::<H, 32>);
    add(list, Case::MustCallDrop, rival, bytes, cases::must_call_drop::<H>);
    add(list, Case::HandOver, rival, bytes, cases::hand_over::<H>);
}

/// Only the cases in which it makes a difference.
fn add_only<H: HandOver>(list: &mut Vec<Entry>, rival: &'static str, only: &[Case]) {
    let mut all = Vec::new();
    add_hand_over::<H>(&mut all, rival);
    list.extend(all.into_iter().filter(|entry| only.contains(&entry.case)));
}

fn add_poll<S: Poll>(list: &mut Vec<Entry>, rival: &'static str) {
    add(list, Case::Poll, rival, size_of::<S>(), cases::poll::<S>);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::BATCH;

    #[test]
    fn every_contender_does_the_work_in_every_case() {
        for Entry { case, rival, job, .. } in roster() {
            for operations in [0, BATCH, 4 * BATCH] {
                let told = job(operations).told;
                assert_eq!(told, case.expected(operations), "{rival} in {} of {operations}", case.name());
            }
        }
    }

    #[test]
    fn every_case_has_its_baseline_and_no_contender_twice() {
        let entries = roster();
        for case in Case::ALL {
            let mut rivals: Vec<_> =
                entries.iter().filter(|entry| entry.case == case).map(|entry| entry.rival).collect();
            assert!(rivals.contains(&case.baseline()), "{}", case.name());
            let all = rivals.len();
            rivals.sort_unstable();
            rivals.dedup();
            assert_eq!(rivals.len(), all, "{}", case.name());
        }
    }
}
