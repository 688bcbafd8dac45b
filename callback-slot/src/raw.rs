//! A callback without its type: a header that knows how to finish the task, and the place where the task lies.
//!
//! The header is one function, `finish(header, place, Option<value>)`, which moves the task out of where it lies, frees
//! the memory if that is the task's own, and only then runs user code. Every form of slot ends here:
//!
//! | task lies | header lies | `place` | memory freed by |
//! |---|---|---|---|
//! | behind the header, in a node of its own | in that node | unused | `finish` |
//! | nowhere, it is zero-sized | in a constant | unused | nobody |
//! | nowhere, it puts the value where a reply finds it | in what callback and reply share | unused | the last of the two |
//! | in the shared node, or in the slot's owner | in a constant | points to it | the last handle; the owner |
//!
//! The header is not generic over a reference to a vtable: `&'static Vtable<T>` would demand `T: 'static` of every type.

use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ptr::NonNull;

use crate::primitive::{heap, Word};
use crate::task::Task;

/// Finishes a task: `(header, place, value)`.
type Finish<T> = unsafe fn(NonNull<()>, *mut (), Option<T>);

/// What a [`Word`] points to.
#[repr(C)]
pub(crate) struct Header<T> {
    finish: Finish<T>,
}

// The sentinel is the address 1, which no header can have.
static_assertions::const_assert!(mem::align_of::<Header<()>>() > 1);

impl<T> Header<T> {
    /// A header for tasks that lie at `place`, or that are zero-sized.
    pub(crate) const fn new(finish: Finish<T>) -> Self {
        Header { finish }
    }
}

/// A task in memory of its own.
#[repr(C)]
struct Node<T, K> {
    header: Header<T>,
    task: K,
}

impl<T, K: Task<T>> Node<T, K> {
    /// # Safety
    ///
    /// `node` comes from [`store`] with the same types and is given up.
    unsafe fn finish(node: NonNull<()>, _: *mut (), value: Option<T>) {
        // SAFETY: `store` allocated this node and put this function into it; the caller gives it up.
        let node = unsafe { heap::reclaim(node.cast::<Node<T, K>>()) };
        node.task.finish(value);
    }
}

/// The constant header of a task that needs no memory.
struct ZeroSized<T, K>(PhantomData<(T, K)>);

impl<T, K: Task<T>> ZeroSized<T, K> {
    const HEADER: *const Header<T> = &Header::new(Self::finish);

    /// # Safety
    ///
    /// `K` is zero-sized, and a value of it was given up for this call.
    unsafe fn finish(_: NonNull<()>, _: *mut (), value: Option<T>) {
        // SAFETY: a zero-sized value is read from any aligned address; the caller gave one up.
        let task = unsafe { NonNull::<K>::dangling().as_ptr().read() };
        task.finish(value);
    }
}

/// Stores `task` where it needs no owner, and returns the word for it.
#[inline]
pub(crate) fn store<T, K: Task<T>>(task: K) -> Word {
    if mem::size_of::<K>() == 0 {
        mem::forget(task);
        // SAFETY: a pointer to a constant is not null.
        return unsafe { word_of(ZeroSized::<T, K>::HEADER) };
    }
    let node = heap::allocate(Node { header: Header::new(Node::<T, K>::finish), task });
    Word::new(node.cast())
}

/// The word for a header that is a constant.
///
/// # Safety
///
/// `header` is not null.
#[inline]
pub(crate) unsafe fn word_of<T>(header: *const Header<T>) -> Word {
    // SAFETY: by contract. Nobody writes through the pointer.
    Word::new(unsafe { NonNull::new_unchecked(header.cast_mut().cast()) })
}

/// A task that its slot has let go of. It is finished exactly once: by [`Won::call`], or by being dropped.
#[must_use]
pub(crate) struct Won<T> {
    header: NonNull<()>,
    place: *mut (),
    marker: PhantomData<fn(T)>,
}

impl<T> Won<T> {
    /// # Safety
    ///
    /// `word` stands for a task that takes a `T` and that the caller alone may finish. If its header is for tasks with
    /// a place, the task lies at `place` and stays there until this value is gone.
    #[inline]
    pub(crate) unsafe fn new(word: Word, place: *mut ()) -> Self {
        Won { header: word.pointer(), place, marker: PhantomData }
    }

    /// Runs the task with `value`.
    #[inline]
    pub(crate) fn call(self, value: T) {
        ManuallyDrop::new(self).finish(Some(value));
    }

    #[inline]
    fn finish(&mut self, value: Option<T>) {
        // SAFETY: the word stood for a header of this type.
        let finish = unsafe { self.header.cast::<Header<T>>().as_ref() }.finish;
        // SAFETY: by the contract of `new` this is the one who may finish the task; `call` and `drop` do it once.
        unsafe { finish(self.header, self.place, value) }
    }
}

impl<T> Drop for Won<T> {
    #[inline]
    fn drop(&mut self) {
        if cfg!(callback_slot_mutation = "drop_nothing") {
            return;
        }
        self.finish(None);
    }
}
