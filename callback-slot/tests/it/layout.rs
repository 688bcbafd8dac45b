//! Sizes and auto-traits are facts that users build on, so they are pinned.

use callback_slot::{
    assert_lock_free, Callback, CallbackSlot, CompleteError, InPlaceSlot, OptionCell, SharedSlot,
};
use static_assertions::{assert_eq_size, assert_impl_all, assert_not_impl_any, const_assert};
use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

assert_eq_size!(Callback<u64>, usize);
assert_eq_size!(Option<Callback<u64>>, usize);
assert_eq_size!(Option<Callback<[u64; 100]>>, usize);
assert_eq_size!(CallbackSlot<[u64; 100]>, usize);
assert_eq_size!(SharedSlot<[u64; 100]>, usize);
assert_eq_size!(Option<SharedSlot<u64>>, usize);

assert_lock_free!(Option<Callback<u64>>, Option<Callback<String>>, usize);
const_assert!(CallbackSlot::<[u64; 100]>::is_lock_free());

// Between threads whatever the value is: plain, not `Sync`, not even `Send`. It never crosses inside the slot.
assert_impl_all!(Callback<u64>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Callback<Cell<u64>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Callback<Rc<u64>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(CallbackSlot<u64>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Default);
assert_impl_all!(CallbackSlot<Cell<u64>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(CallbackSlot<Rc<u64>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(SharedSlot<u64>: Send, Sync, Clone, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(SharedSlot<Cell<u64>>: Send, Sync, Clone, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(SharedSlot<Rc<u64>>: Send, Sync, Clone, Unpin, UnwindSafe, RefUnwindSafe);

assert_impl_all!(InPlaceSlot<u64>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Default);
assert_impl_all!(InPlaceSlot<Cell<u64>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(InPlaceSlot<Rc<u64>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_eq_size!(InPlaceSlot<u8>, [usize; 9]);
assert_eq_size!(InPlaceSlot<u8, 0>, usize);

// These carry values from thread to thread: they are as sendable as the values, which need not be `Sync`.
assert_impl_all!(OptionCell<Box<Cell<u64>>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Default);
assert_impl_all!(OptionCell<std::sync::Arc<u64>>: Send, Sync);
assert_impl_all!(OptionCell<Callback<Rc<u64>>>: Send, Sync);
assert_not_impl_any!(OptionCell<Box<Rc<u64>>>: Send, Sync);
assert_not_impl_any!(OptionCell<std::sync::Arc<Cell<u64>>>: Send, Sync);
assert_eq_size!(OptionCell<Box<u64>>, usize);

#[cfg(any(feature = "wait", feature = "future"))]
mod reply {
    use super::*;
    use callback_slot::Reply;

    assert_impl_all!(Reply<Cell<u64>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
    assert_not_impl_any!(Reply<Rc<u64>>: Send, Sync);
}

assert_not_impl_any!(Callback<u64>: Clone);
assert_not_impl_any!(InPlaceSlot<u64>: Clone);
assert_not_impl_any!(CallbackSlot<u64>: Clone);

// The error carries the value, so it is as sendable as the value.
assert_impl_all!(CompleteError<u64>: Send, Sync, std::error::Error);
assert_not_impl_any!(CompleteError<Rc<u64>>: Send, Sync);

#[test]
fn lock_freedom_is_asserted_at_run_time_too() {
    callback_slot::assert_lock_free::<Option<Callback<u64>>>();
    assert!(!callback_slot::is_lock_free::<Option<Box<dyn FnOnce(u64) + Send>>>());
    let refused = std::panic::catch_unwind(callback_slot::assert_lock_free::<[usize; 3]>).unwrap_err();
    let message = refused.downcast_ref::<String>().unwrap();
    assert_eq!(message, "AtomicCell<[usize; 3]> is not lock-free on this target");
}
