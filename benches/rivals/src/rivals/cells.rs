//! Atomic cells around a closure.

use std::sync::{Arc, atomic::Ordering};

use arc_swap::ArcSwapOption;
use atomic_take::AtomicTake;
use atomicbox::AtomicOptionBox;
use callback_cell::CallbackCellArgs;
use crossbeam_utils::atomic::AtomicCell;

use super::{BoxedCallback, Sealed};
use crate::{
    contender::{Poll, Slot},
    work::Closure,
};

/// `callback_cell`: the nearest relative, one word and a thin box.
pub struct CallbackCell(CallbackCellArgs<u64, ()>);

/// `AtomicCell` of an optional box: two words, so one of crossbeam's process-wide locks guards it.
pub struct TwoWordCell(AtomicCell<Option<BoxedCallback>>);

/// `AtomicCell` of an optional box of a box: one word, lock-free, two allocations.
pub struct DoubleBoxCell(AtomicCell<Option<Box<BoxedCallback>>>);

/// `atomicbox`, with a box in it.
pub struct AtomicBoxCell(AtomicOptionBox<BoxedCallback>);

/// `atomic-take`: a flag beside the value.
pub struct AtomicTakeCell(AtomicTake<BoxedCallback>);

/// `arc-swap`: the taken `Arc` has to be opened, which works as long as nobody else loads.
pub struct ArcSwapCell(ArcSwapOption<Sealed>);

// SAFETY: `put` is called before the cell is shared, and `take_call` is an acquiring swap. The crate itself offers no `Sync`
// for callbacks with arguments, so this is what a user would have to write.
unsafe impl Sync for CallbackCell {}

impl Slot for CallbackCell {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        let cell = CallbackCellArgs::new();
        cell.put(closure);
        CallbackCell(cell)
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        self.0.take_call(value).is_ok()
    }
}

impl Slot for TwoWordCell {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        TwoWordCell(AtomicCell::new(Some(Box::new(closure))))
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        self.0.take().map(|callback| callback(value)).is_some()
    }
}

impl Slot for DoubleBoxCell {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        DoubleBoxCell(AtomicCell::new(Some(Box::new(Box::new(closure)))))
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        self.0.take().map(|callback| callback(value)).is_some()
    }
}

impl Slot for AtomicBoxCell {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        AtomicBoxCell(AtomicOptionBox::new(Some(Box::new(Box::new(closure)))))
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        self.0.take(Ordering::AcqRel).map(|callback| callback(value)).is_some()
    }
}

impl Slot for AtomicTakeCell {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        AtomicTakeCell(AtomicTake::new(Box::new(closure)))
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        self.0.take().map(|callback| callback(value)).is_some()
    }
}

impl Poll for AtomicTakeCell {
    #[inline(always)]
    fn is_armed(&self) -> bool {
        !self.0.is_taken()
    }
}

impl Slot for ArcSwapCell {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        ArcSwapCell(ArcSwapOption::from_pointee(Sealed(Box::new(closure))))
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        self.0.swap(None).and_then(Arc::into_inner).map(|sealed| (sealed.0)(value)).is_some()
    }
}

impl Poll for ArcSwapCell {
    #[inline(always)]
    fn is_armed(&self) -> bool {
        self.0.load().is_some()
    }
}
