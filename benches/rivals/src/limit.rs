//! The limit: what one would write by hand for this one purpose, an atomic pointer and a thin box, and nothing else.
//!
//! It knows no state but "there" and "gone", no payload but a `u64`, no place but the heap or nothing. It is as careful
//! as the others: memory is freed before the closure runs, so that nothing leaks when that panics.

use std::{
    mem::MaybeUninit,
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, Ordering},
};

use crate::{
    contender::{Poll, Slot},
    work::Closure,
};

#[repr(C)]
struct Header {
    /// Calls the closure with a value, or drops it; frees its memory in either case.
    finish: unsafe fn(*mut Header, Option<u64>),
}

#[repr(C)]
struct Node<F> {
    header: Header,
    closure: F,
}

impl<F: Closure> Node<F> {
    const ZERO_SIZED: &'static Header = &Header { finish: Self::finish_zero_sized };

    /// # Safety
    ///
    /// `header` is the start of a boxed `Node<F>`, which is given up.
    unsafe fn finish_and_free_first(header: *mut Header, value: Option<u64>) {
        // SAFETY: by contract.
        let node = *unsafe { Box::from_raw(header.cast::<Self>()) };
        if let Some(value) = value {
            (node.closure)(value);
        }
    }

    /// # Safety
    ///
    /// As above.
    unsafe fn finish_and_free_last(header: *mut Header, value: Option<u64>) {
        // SAFETY: by contract. The box has the layout of the node, and gives it back when it goes, whatever happens.
        let node = unsafe { Box::from_raw(header.cast::<MaybeUninit<Self>>()) };
        // SAFETY: the node is whole, and nobody reads it again.
        let Node { closure, .. } = unsafe { node.assume_init_read() };
        if let Some(value) = value {
            closure(value);
        }
    }

    /// # Safety
    ///
    /// `F` is zero-sized, and one of its values was forgotten for this call.
    unsafe fn finish_zero_sized(_: *mut Header, value: Option<u64>) {
        // SAFETY: by contract; a zero-sized value is read from any aligned address.
        let closure = unsafe { NonNull::<F>::dangling().as_ptr().read() };
        if let Some(value) = value {
            closure(value);
        }
    }
}

/// The slot that nothing should beat which does the same.
///
/// `FREE_LAST` keeps the memory until the closure has run. The closure need not be moved out of it then, which shows when
/// it is large; but a closure that allocates finds the memory still taken.
pub struct Limit<const FREE_LAST: bool = false>(AtomicPtr<Header>);

impl<const FREE_LAST: bool> Slot for Limit<FREE_LAST> {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        if size_of::<F>() == 0 {
            std::mem::forget(closure);
            return Limit(AtomicPtr::new(ptr::from_ref(Node::<F>::ZERO_SIZED).cast_mut()));
        }
        let finish =
            if FREE_LAST { Node::<F>::finish_and_free_last } else { Node::<F>::finish_and_free_first };
        let header = Header { finish };
        Limit(AtomicPtr::new(Box::into_raw(Box::new(Node { header, closure })).cast()))
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        // ORDERING: Acquire, the closure that is called was written by whoever published the slot. Release, so that
        // what the loser sees is not older than the winner's swap.
        let header = self.0.swap(ptr::null_mut(), Ordering::AcqRel);
        if header.is_null() {
            return false;
        }
        // SAFETY: this swap took the pointer out, so the closure behind it is nobody else's.
        unsafe { finish(header, Some(value)) };
        true
    }
}

impl Poll for Limit {
    #[inline(always)]
    fn is_armed(&self) -> bool {
        // ORDERING: Relaxed, a hint.
        !self.0.load(Ordering::Relaxed).is_null()
    }
}

impl<const FREE_LAST: bool> Drop for Limit<FREE_LAST> {
    #[inline]
    fn drop(&mut self) {
        let header = *self.0.get_mut();
        if !header.is_null() {
            // SAFETY: nobody else has access, and nobody has taken the pointer out.
            unsafe { finish(header, None) };
        }
    }
}

/// # Safety
///
/// `header` was put into a slot by `armed`, and is given up.
#[inline(always)]
unsafe fn finish(header: *mut Header, value: Option<u64>) {
    // SAFETY: by contract it is alive.
    let finish = unsafe { (*header).finish };
    // SAFETY: by contract it is what the function was made for.
    unsafe { finish(header, value) }
}
