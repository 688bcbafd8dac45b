//! The one allocation behind a shared slot, and the count that decides when it goes.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use crate::primitive::{heap, ordering, AtomicUsize, UnsafeCell};
use crate::raw::{self, Header, Won};
use crate::state::SlotCell;
use crate::task::Task;

/// More handles than fit into any memory: the count is far from wrapping when the process aborts.
const MAX_HANDLES: usize = isize::MAX as usize;

/// What every handle can reach without knowing the closure's type.
#[repr(C)]
struct Head {
    handles: AtomicUsize,
    cell: SlotCell,
    free: unsafe fn(NonNull<Head>),
}

/// The one allocation. The task is whole while the slot is ARMED, and moved out from then on.
#[repr(C)]
struct Node<T, K> {
    head: Head,
    task: UnsafeCell<ManuallyDrop<K>>,
    marker: PhantomData<fn(T)>,
}

impl<T, K: Task<T>> Node<T, K> {
    const HEADER: *const Header<T> = &Header::new(Self::finish);

    /// # Safety
    ///
    /// `node` is a live `Node<T, K>` whose task this call alone may finish.
    unsafe fn finish(_: NonNull<()>, node: *mut (), value: Option<T>) {
        let node = node.cast::<Self>();
        // SAFETY: the node is alive. The reference covers the task alone, and ends before user code runs.
        let cell = unsafe { &(*node).task };
        // SAFETY: the task is whole, and the caller is the only one who may take it.
        let task = cell.with_mut(|task| unsafe { task.read() });
        ManuallyDrop::into_inner(task).finish(value);
    }

    /// # Safety
    ///
    /// `head` is that of a `Node<T, K>` which nobody uses any more, and whose task was finished.
    unsafe fn free(head: NonNull<Head>) {
        let node = head.cast::<Self>();
        // Under loom this checks that the winner had moved the task out before.
        // SAFETY: the node is alive, and the reference covers the task alone.
        unsafe { &(*node.as_ptr()).task }.with_mut(|_| ());
        // SAFETY: `NodeRef::new` allocated this node and put this function into it; the caller gives it up.
        unsafe { heap::free(node) };
    }
}

/// A share of a node: as long as one is held, the node is alive.
pub(super) struct NodeRef(NonNull<Head>);

impl NodeRef {
    /// A node with one share, armed with `task`.
    #[inline]
    pub(super) fn new<T, K: Task<T>>(task: K) -> Self {
        // SAFETY: a pointer to a constant is not null.
        let word = unsafe { raw::word_of(Node::<T, K>::HEADER) };
        let head =
            Head { handles: AtomicUsize::new(1), cell: SlotCell::armed(word), free: Node::<T, K>::free };
        let task = UnsafeCell::new(ManuallyDrop::new(task));
        let node = heap::allocate(Node::<T, K> { head, task, marker: PhantomData });
        NodeRef(node.cast())
    }

    #[inline]
    pub(super) fn cell(&self) -> &SlotCell {
        // SAFETY: this share keeps the node alive, and the cell is only ever borrowed shared until the last share goes.
        unsafe { &self.0.as_ref().cell }
    }

    /// Where the header of the node's task finds it.
    #[inline]
    pub(super) fn place(&self) -> *mut () {
        self.0.as_ptr().cast()
    }

    /// Another share.
    #[inline]
    pub(super) fn retain(&self) -> Self {
        // ORDERING: Relaxed, the new share is made from one that this thread has already.
        if self.handles().fetch_add(1, Ordering::Relaxed) > MAX_HANDLES {
            abort();
        }
        NodeRef(self.0)
    }

    /// Gives up this share. The last one finishes the task if nobody has, and frees the node.
    ///
    /// # Safety
    ///
    /// The share is not used again, and the node's task takes a `T`.
    #[inline]
    pub(super) unsafe fn release<T>(&mut self) {
        // Only the count is borrowed, not the head: once it is decremented, another thread may free the node.
        let handles = self.handles();
        // ORDERING: Acquire, pairs with the decrements below: a count of one is this share, so all others are gone, and
        // what was done with them is visible to the one who finishes the task and frees the node. Saves a decrement.
        if handles.load(ordering!(Acquire, "sole_owner_relaxed" => Relaxed)) != 1 {
            // ORDERING: Release, pairs with the loads of whoever finds to be the last.
            let left = handles.fetch_sub(1, ordering!(Release, "handle_drop_relaxed" => Relaxed)) - 1;
            if left != 0 && !(cfg!(callback_slot_mutation = "free_too_early") && left == 1) {
                return;
            }
            // ORDERING: Acquire, pairs with all decrements, as above. A load where a fence would do, because
            // ThreadSanitizer does not understand fences.
            handles.load(ordering!(Acquire, "last_owner_relaxed" => Relaxed));
        }
        // SAFETY: all other shares are gone, and all that was done with them happened before.
        unsafe { self.destroy::<T>() }
    }

    #[inline]
    fn handles(&self) -> &AtomicUsize {
        // SAFETY: this share keeps the node alive. A reference to an atomic may outlive its memory while nobody uses it.
        unsafe { &self.0.as_ref().handles }
    }

    /// # Safety
    ///
    /// Nobody else has a share, and this one is not used again. The node's task takes a `T`.
    unsafe fn destroy<T>(&mut self) {
        // Frees the node at the end, also if the task's destructor or fallback panics.
        let _guard = FreeOnDrop(self.0);
        // SAFETY: nobody else has access. The borrow ends with the statement.
        let word = unsafe { &mut (*self.0.as_ptr()).cell }.last();
        // SAFETY: the slot was armed with this word, nobody has won it, and the node lives until the guard goes.
        drop(word.map(|word| unsafe { Won::<T>::new(word, self.place()) }));
    }
}

/// Frees a node whose task is finished.
struct FreeOnDrop(NonNull<Head>);

impl Drop for FreeOnDrop {
    #[inline]
    fn drop(&mut self) {
        if cfg!(callback_slot_mutation = "free_never") {
            return;
        }
        // SAFETY: the node is alive until here.
        let free = unsafe { self.0.as_ref() }.free;
        // SAFETY: `destroy` has the last share and has finished the task.
        unsafe { free(self.0) }
    }
}

/// Ends the process: a panic cannot leave a function of the C ABI.
#[cold]
fn abort() -> ! {
    extern "C" fn no_unwinding() -> ! {
        panic!("a shared slot has more handles than fit into memory")
    }
    no_unwinding()
}

#[cfg(all(test, feature = "std", unix, not(any(miri, callback_slot_loom))))]
mod tests {
    use std::process::Command;
    use std::string::String;

    use super::*;
    use crate::task::Plain;

    /// Set in the process that is to abort.
    const CHILD: &str = "CALLBACK_SLOT_OVERFLOW";

    #[test]
    fn overflow_aborts() {
        if std::env::var_os(CHILD).is_some() {
            let node = NodeRef::new::<(), _>(Plain(drop));
            // ORDERING: Relaxed, there is one thread.
            node.handles().store(MAX_HANDLES, Ordering::Relaxed);
            let _ = node.retain();
            std::println!("at the limit");
            let _ = node.retain();
            std::process::exit(0);
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shared::node::tests::overflow_aborts", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&child.stdout).contains("at the limit"), "{child:?}");
        assert_eq!(child.status.code(), None, "ended by a signal, not by a panic that could be caught");
        assert!(
            String::from_utf8_lossy(&child.stderr).contains("more handles than fit into memory"),
            "{child:?}"
        );
    }
}
