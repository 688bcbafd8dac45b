//! A slot whose closure lies inside its owner, such as a task context: no allocation at all for what fits.

mod complete;
mod place;
mod traits;

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crate::primitive::{const_unless_loom, UnsafeCell};
use crate::raw::Won;
use crate::state::SlotCell;
use crate::task::{MustCall, Plain};

/// A one-shot slot that holds its closure itself.
///
/// Like a [`CallbackSlot`](crate::CallbackSlot), with room for `WORDS` words of captures next to the atomic word. A closure
/// (for a must-call: closure and fallback together) that is larger, or aligned to more than a word, goes to the heap as
/// in a `Callback`; [`fits`](InPlaceSlot::fits) says which. For a slot that lives in something that exists anyway, such
/// as the context of a task: no allocation, and none to free on another thread.
///
/// It can be armed only by whoever is alone with it, by [`rearm`](InPlaceSlot::rearm) or by assignment: two threads that
/// both arm it would both write the storage. There is no `take` either, because the closure cannot leave in one word.
///
/// # Ordering
///
/// As for [`CallbackSlot`](crate::CallbackSlot): everything before the slot was made and shared, and everything before
/// the call that completes it, is visible in the callback.
///
/// # Re-entrancy and panics
///
/// As for [`CallbackSlot`](crate::CallbackSlot). The closure is moved out of the slot before it runs.
///
/// # Examples
///
/// ```
/// use callback_slot::InPlaceSlot;
/// use std::sync::{mpsc, Arc};
///
/// struct TaskContext {
///     command: &'static str,
///     callback: InPlaceSlot<Result<u64, String>>,
/// }
///
/// let (sender, receiver) = mpsc::channel();
/// let callback = InPlaceSlot::new(move |outcome| sender.send(outcome).unwrap());
/// let task = Arc::new(TaskContext { command: "put", callback });
///
/// task.callback.complete(Ok(7)).unwrap();
/// assert_eq!(receiver.recv().unwrap(), Ok(7));
/// # assert_eq!(task.command, "put");
/// ```
///
/// What closure and fallback capture has to be `Send`:
///
/// ```compile_fail,E0277
/// let counter = std::rc::Rc::new(0);
/// callback_slot::InPlaceSlot::<u32>::new(move |_| drop(counter));
/// ```
///
/// ```compile_fail,E0277
/// let value = std::rc::Rc::new(7);
/// callback_slot::InPlaceSlot::<_>::must_call(drop, move || value);
/// ```
///
/// ```compile_fail,E0277
/// let counter = std::rc::Rc::new(0);
/// callback_slot::InPlaceSlot::<u32>::empty().rearm(move |_| drop(counter));
/// ```
pub struct InPlaceSlot<T, const WORDS: usize = 8> {
    cell: SlotCell,
    /// Holds the task while the slot is ARMED with the header of a task in place, and nothing otherwise.
    storage: UnsafeCell<MaybeUninit<[usize; WORDS]>>,
    marker: PhantomData<fn(T)>,
}

// SAFETY: the task in the storage is `Send`. A `T` is only ever passed on within one call, on one thread.
unsafe impl<T, const WORDS: usize> Send for InPlaceSlot<T, WORDS> {}
// SAFETY: through `&self` the storage is only read by the one who wins the cell's word.
unsafe impl<T, const WORDS: usize> Sync for InPlaceSlot<T, WORDS> {}

impl<T, const WORDS: usize> core::panic::UnwindSafe for InPlaceSlot<T, WORDS> {}
impl<T, const WORDS: usize> core::panic::RefUnwindSafe for InPlaceSlot<T, WORDS> {}

impl<T, const WORDS: usize> InPlaceSlot<T, WORDS> {
    const_unless_loom! {
        /// A slot without a callback. Not `const` under loom.
        ///
        /// # Examples
        ///
        /// ```
        /// # use callback_slot::InPlaceSlot;
        /// let mut slot = InPlaceSlot::<u32>::empty();
        /// assert!(slot.complete(7).is_err());
        /// slot.rearm(|answer| assert_eq!(answer, 42));
        /// slot.complete(42).unwrap();
        /// ```
        #[must_use]
        pub const fn empty() -> Self {
            InPlaceSlot {
                cell: SlotCell::empty(),
                storage: UnsafeCell::new(MaybeUninit::uninit()),
                marker: PhantomData,
            }
        }
    }

    /// A slot that is armed with `closure`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::InPlaceSlot;
    /// let slot = InPlaceSlot::<u32>::new(|answer| assert_eq!(answer, 42));
    /// slot.complete(42).unwrap();
    /// ```
    #[inline]
    pub fn new<F>(closure: F) -> Self
    where
        F: FnOnce(T) + Send + 'static,
    {
        Self::store(Plain(closure))
    }

    /// A slot that is armed with a closure that runs in any case. See [`Callback::must_call`](crate::Callback::must_call).
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::InPlaceSlot;
    /// let slot = InPlaceSlot::must_call(|answer| assert_eq!(answer, Err("dropped")), || Err("dropped"));
    /// # let slot: InPlaceSlot<Result<u32, &str>> = slot;
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

    /// Arms the slot in whatever state it is, by whoever is alone with it.
    ///
    /// The callback it was armed with is dropped first. To arm it with a must-call, assign a new slot.
    ///
    /// # Panics
    ///
    /// If the old callback's destructor panics; the slot is empty then.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::InPlaceSlot;
    /// let mut slot = InPlaceSlot::<u32>::new(|answer| assert_eq!(answer, 1));
    /// slot.complete(1).unwrap();
    /// slot.rearm(|answer| assert_eq!(answer, 2));
    /// slot.complete(2).unwrap();
    /// slot = InPlaceSlot::must_call(|answer| assert_eq!(answer, 3), || 3);
    /// # drop(slot);
    /// ```
    #[inline]
    pub fn rearm<F>(&mut self, closure: F)
    where
        F: FnOnce(T) + Send + 'static,
    {
        self.reset();
        self.fill(Plain(closure));
    }

    /// Makes the slot empty in whatever state it is, by whoever is alone with it. A waiting callback is dropped.
    ///
    /// # Panics
    ///
    /// If the callback's destructor panics; the slot is empty all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::InPlaceSlot;
    /// let mut slot = InPlaceSlot::<u32>::new(drop);
    /// slot.reset();
    /// assert!(!slot.is_armed());
    /// ```
    #[inline]
    pub fn reset(&mut self) {
        let place = self.place();
        let word = self.cell.reset();
        // SAFETY: the slot was armed with this word and has let go of it; the task lies in the storage.
        drop(word.map(|word| unsafe { Won::<T>::new(word, place) }));
    }

    /// Whether captures of type `F` are stored in place. If not, they cost one allocation.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::InPlaceSlot;
    /// assert!(InPlaceSlot::<u32>::fits::<[usize; 8]>());
    /// assert!(!InPlaceSlot::<u32>::fits::<[usize; 9]>());
    /// assert!(InPlaceSlot::<u32, 16>::fits::<[usize; 9]>());
    /// ```
    #[must_use]
    pub const fn fits<F>() -> bool {
        size_of::<F>() <= size_of::<[usize; WORDS]>() && align_of::<F>() <= align_of::<usize>()
    }
}

impl<T, const WORDS: usize> Drop for InPlaceSlot<T, WORDS> {
    #[inline]
    fn drop(&mut self) {
        let place = self.place();
        let word = self.cell.last();
        // SAFETY: the slot was armed with this word, which nobody looks at again; the task lies in the storage.
        drop(word.map(|word| unsafe { Won::<T>::new(word, place) }));
    }
}
