//! A slot with several owners, fused with their count and with the closure in one allocation.

mod complete;
mod node;

use core::fmt;
use core::marker::PhantomData;

use crate::callback::Callback;
use crate::task::{MustCall, Plain, Task};

use self::node::NodeRef;

/// A one-shot slot that several owners share, such as a scheduler and a proposal under way.
///
/// Like an `Arc<CallbackSlot<T>>` whose count, slot, closure and fallback lie in *one* allocation. It is born armed. Of
/// all the handles that complete it, exactly one wins. When the last handle goes and nobody has completed the slot, the
/// closure is dropped; if it was made by [`must_call`](SharedSlot::must_call), it runs with the fallback's value.
///
/// Each operation is wait-free: cloning, completing and asking are one atomic operation, dropping is at most three on the
/// count, and for the last handle a load of a word that nobody else can reach.
///
/// # Ordering
///
/// Everything that happened before the slot was made, and everything that happened before the call that completes it,
/// is visible in the callback. Everything that any handle's owner did before dropping it is visible when the last
/// handle's drop drops the closure or runs the fallback.
///
/// # Re-entrancy and panics
///
/// As for [`CallbackSlot`](crate::CallbackSlot): user code runs after the slot is DONE. The callback may drop further
/// handles to its own slot. A closure that *captures* a handle to its own slot keeps it alive, and leaks if nobody
/// completes it: a cycle, as with `Arc`.
///
/// # Examples
///
/// ```
/// use callback_slot::SharedSlot;
/// use std::{sync::mpsc, thread};
///
/// let (sender, receiver) = mpsc::channel();
/// let scheduler = SharedSlot::must_call(move |outcome| sender.send(outcome).unwrap(), || Err("dropped"));
/// let proposal: SharedSlot<Result<u64, &str>> = scheduler.clone();
///
/// let apply = thread::spawn(move || proposal.complete(Ok(7)).is_ok());
/// assert!(apply.join().unwrap());
/// assert!(scheduler.complete(Err("too late")).is_err());
/// assert_eq!(receiver.recv(), Ok(Ok(7)));
/// ```
///
/// What closure and fallback capture has to be `Send`, as the last handle may go on any thread:
///
/// ```compile_fail,E0277
/// let counter = std::rc::Rc::new(0);
/// callback_slot::SharedSlot::new(move |_: u32| drop(counter));
/// ```
///
/// ```compile_fail,E0277
/// let value = std::rc::Rc::new(7);
/// callback_slot::SharedSlot::must_call(drop, move || value);
/// ```
pub struct SharedSlot<T> {
    node: NodeRef,
    marker: PhantomData<fn(T)>,
}

// SAFETY: the handles share a count and a cell, both atomic, and a task that is `Send`. A `T` is only ever passed on
// within one call, on one thread.
unsafe impl<T> Send for SharedSlot<T> {}
// SAFETY: as above; `&SharedSlot` gives what a clone gives.
unsafe impl<T> Sync for SharedSlot<T> {}

impl<T> SharedSlot<T> {
    /// The first handle to a slot that is armed with `closure`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::SharedSlot;
    /// let slot = SharedSlot::new(|answer: u32| assert_eq!(answer, 42));
    /// slot.complete(42).unwrap();
    /// ```
    #[inline]
    pub fn new<F>(closure: F) -> Self
    where
        F: FnOnce(T) + Send + 'static,
    {
        Self::store(Plain(closure))
    }

    /// The first handle to a slot whose closure runs in any case. See [`Callback::must_call`].
    ///
    /// The fallback is evaluated when the last handle goes, by whoever drops it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::SharedSlot;
    /// let slot = SharedSlot::must_call(|answer| assert_eq!(answer, Err("dropped")), || Err("dropped"));
    /// # let slot: SharedSlot<Result<u32, &str>> = slot;
    /// drop(slot.clone());
    /// assert!(slot.is_armed(), "another handle is left");
    /// drop(slot);
    /// ```
    #[inline]
    pub fn must_call<F, G>(closure: F, fallback: G) -> Self
    where
        F: FnOnce(T) + Send + 'static,
        G: FnOnce() -> T + Send + 'static,
    {
        Self::store(MustCall { closure, fallback })
    }

    #[inline]
    fn store<K: Task<T>>(task: K) -> Self {
        SharedSlot { node: NodeRef::new::<T, K>(task), marker: PhantomData }
    }
}

/// Another handle to the same slot.
///
/// # Panics
///
/// Never. It aborts if there were more than `isize::MAX` handles, which takes forgetting them in a loop.
impl<T> Clone for SharedSlot<T> {
    #[inline]
    fn clone(&self) -> Self {
        SharedSlot { node: self.node.retain(), marker: PhantomData }
    }
}

impl<T> Drop for SharedSlot<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the handle gives up its share of the node, whose task takes a `T`.
        unsafe { self.node.release::<T>() }
    }
}

/// The slot takes over the callback as its closure; a must-call stays one. One allocation, besides the callback's own.
impl<T: 'static> From<Callback<T>> for SharedSlot<T> {
    fn from(callback: Callback<T>) -> Self {
        Self::new(move |value| callback.call(value))
    }
}

/// Shows the state.
impl<T> fmt::Debug for SharedSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedSlot({:?})", self.node.cell().state())
    }
}
