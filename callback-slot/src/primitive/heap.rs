//! Memory for nodes: a `Box` given up and got back, or under loom an allocation that loom checks for leaks.

use core::ptr::NonNull;

/// Moves `node` into memory of its own.
#[cfg(not(callback_slot_loom))]
#[inline]
pub(crate) fn allocate<N>(node: N) -> NonNull<N> {
    let pointer = alloc::boxed::Box::into_raw(alloc::boxed::Box::new(node));
    // SAFETY: a pointer out of a box is not null.
    unsafe { NonNull::new_unchecked(pointer) }
}

/// Moves the node out of its memory and frees that.
///
/// # Safety
///
/// `node` comes from [`allocate`] with the same `N`, and nobody uses it any more.
#[cfg(not(callback_slot_loom))]
#[inline]
pub(crate) unsafe fn reclaim<N>(node: NonNull<N>) -> N {
    // SAFETY: the pointer came out of a box of the same type, and the caller gives it up.
    *unsafe { alloc::boxed::Box::from_raw(node.as_ptr()) }
}

/// Drops the node and frees its memory, without moving it first.
///
/// # Safety
///
/// As for [`reclaim`].
#[inline]
pub(crate) unsafe fn free<N>(node: NonNull<N>) {
    #[cfg(not(callback_slot_loom))]
    // SAFETY: the pointer came out of a box of the same type, and the caller gives it up.
    drop(unsafe { alloc::boxed::Box::from_raw(node.as_ptr()) });
    #[cfg(callback_slot_loom)]
    // SAFETY: the same contract.
    drop(unsafe { reclaim(node) });
}

/// Moves `node` into memory of its own.
#[cfg(callback_slot_loom)]
pub(crate) fn allocate<N>(node: N) -> NonNull<N> {
    let layout = core::alloc::Layout::new::<N>();
    assert_ne!(layout.size(), 0, "a node holds at least its header");
    // SAFETY: the layout is not zero-sized.
    let pointer = unsafe { loom::alloc::alloc(layout) }.cast::<N>();
    let pointer = NonNull::new(pointer).expect("no memory for a node");
    // SAFETY: the memory is fresh and fits `N`.
    unsafe { pointer.as_ptr().write(node) };
    pointer
}

/// Moves the node out of its memory and frees that.
///
/// # Safety
///
/// `node` comes from [`allocate`] with the same `N`, and nobody uses it any more.
#[cfg(callback_slot_loom)]
pub(crate) unsafe fn reclaim<N>(node: NonNull<N>) -> N {
    // SAFETY: the node is whole, and the caller gives it up.
    let value = unsafe { node.as_ptr().read() };
    // SAFETY: allocated by `allocate` with the same layout; its content was moved out.
    unsafe { loom::alloc::dealloc(node.as_ptr().cast(), core::alloc::Layout::new::<N>()) };
    value
}
