//! The callback itself: one word, called at most once, or exactly once in its must-call form.

use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr;

#[cfg(feature = "std")]
use crate::complete::{self, CallOutcome};
use crate::primitive::Word;
use crate::raw::{self, Won};
use crate::task::{MustCall, Plain, Task};

/// A closure `FnOnce(T) + Send + 'static` in one word.
///
/// A `Box<dyn FnOnce(T)>` is two words, so an atomic cell of it is not lock-free. This is a thin pointer to one
/// allocation that holds a header and the closure; a zero-sized closure or an `fn` item needs no allocation at all.
/// `Option<Callback<T>>` is one word too.
///
/// A callback made by [`new`](Callback::new) that is dropped is not called, and what it captured is dropped. One made by
/// [`must_call`](Callback::must_call) is called in any case.
///
/// # Threads
///
/// A callback is `Send` and `Sync` whatever `T` is: a value never crosses threads inside it. It is handed to
/// [`call`](Callback::call) and to the closure on one and the same thread. What the closure captured does cross, so it
/// has to be `Send`:
///
/// ```compile_fail,E0277
/// use std::rc::Rc;
/// let counter = Rc::new(0);
/// callback_slot::Callback::new(move |_: u32| drop(counter));
/// ```
///
/// Nor can it be the guard of a lock, which has to be released where it was taken:
///
/// ```compile_fail,E0277
/// static LOCK: std::sync::Mutex<u32> = std::sync::Mutex::new(0);
/// let guard = LOCK.lock().unwrap();
/// callback_slot::Callback::new(move |_: u32| drop(guard));
/// ```
///
/// The same goes for a fallback:
///
/// ```compile_fail,E0277
/// let value = std::rc::Rc::new(7);
/// callback_slot::Callback::must_call(drop, move || value);
/// ```
///
/// # Re-entrancy and panics
///
/// Memory is given back before anything of the user's runs, so a closure or a destructor may make and call other callbacks. A
/// panic in the closure, or in the destructor of what it captured, is that of whoever called or dropped the callback; nothing
/// leaks and nothing runs twice. Only a must-call that is dropped keeps its panics to itself, under the feature `std`.
///
/// # Lifetimes
///
/// `T` is one type. A closure that takes a reference of *any* lifetime, `FnOnce(&R)`, does not fit; `T` would have to be
/// `&'a R` for one `'a`. Pass an owned value, or an `Arc`.
///
/// # Examples
///
/// ```
/// use callback_slot::Callback;
/// use std::sync::mpsc;
///
/// let (sender, receiver) = mpsc::channel();
/// let callback = Callback::new(move |outcome: Result<u64, String>| sender.send(outcome).unwrap());
///
/// callback.call(Ok(7));
/// assert_eq!(receiver.recv(), Ok(Ok(7)));
/// assert_eq!(size_of::<Option<Callback<u64>>>(), size_of::<usize>());
/// ```
pub struct Callback<T> {
    word: Word,
    // A consumer of `T`, and contravariant in it: whoever takes every `&'a str` takes a `&'static str` too.
    marker: PhantomData<fn(T)>,
}

// SAFETY: the word stands for a task that is `Send`. A `T` is only ever passed on within one call, on one thread.
unsafe impl<T> Send for Callback<T> {}
// SAFETY: nothing of the task can be reached through `&Callback`.
unsafe impl<T> Sync for Callback<T> {}

impl<T> Callback<T> {
    /// Makes a callback of a closure.
    ///
    /// One allocation, none if the closure is zero-sized.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::Callback;
    /// let callback = Callback::new(|answer: u32| assert_eq!(answer, 42));
    /// callback.call(42);
    /// ```
    #[inline]
    pub fn new<F>(closure: F) -> Self
    where
        F: FnOnce(T) + Send + 'static,
    {
        Self::store(Plain(closure))
    }

    /// Makes a callback that is called in any case.
    ///
    /// If it is dropped uncalled, on any path and any thread, while unwinding too, `closure` still runs, with the value
    /// of `fallback`. That is evaluated at the drop, so it can say what is true then. A fallback that just returns a
    /// value asks that value to be `Send`, as it is captured. One allocation for both, none if both are zero-sized.
    ///
    /// Three things can keep the closure from running: [`mem::forget`](core::mem::forget) and its like; the end of the
    /// process; and a panic in `fallback` itself, which leaves no value to call it with.
    ///
    /// # Panics
    ///
    /// Not here. A panic in the drop, in `fallback` or in `closure`, is caught and counted by `fallback_panics` under
    /// the feature `std`. Without `std` it goes on, and aborts if the drop is part of another panic's unwinding.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::Callback;
    /// # use std::sync::mpsc;
    /// let (sender, receiver) = mpsc::channel();
    /// let callback = Callback::must_call(move |answer| sender.send(answer).unwrap(), || Err("dropped"));
    /// # let callback: Callback<Result<u32, &str>> = callback;
    /// drop(callback);
    /// assert_eq!(receiver.recv().unwrap(), Err("dropped"));
    /// ```
    #[inline]
    pub fn must_call<F, G>(closure: F, fallback: G) -> Self
    where
        F: FnOnce(T) + Send + 'static,
        G: FnOnce() -> T + Send + 'static,
    {
        Self::store(MustCall { closure, fallback })
    }

    /// Calls the closure.
    ///
    /// Its memory is freed before it runs.
    ///
    /// # Panics
    ///
    /// If the closure panics. Nothing leaks and nothing runs twice.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::Callback;
    /// let callback = Callback::new(drop::<String>);
    /// callback.call(String::from("moved in"));
    /// ```
    #[inline]
    pub fn call(self, value: T) {
        self.into_won().call(value);
    }

    /// Calls the closure and catches its panic, or that of a destructor of what it captured or was given.
    ///
    /// # Examples
    ///
    /// ```
    /// # use callback_slot::Callback;
    /// let callback = Callback::new(|_: u32| panic!("a caller's fault"));
    /// assert!(!callback.call_catching(7).is_returned());
    /// ```
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    pub fn call_catching(self, value: T) -> CallOutcome {
        complete::call_catching(self.into_won(), value)
    }

    #[inline]
    fn store<K: Task<T>>(task: K) -> Self {
        Callback { word: raw::store(task), marker: PhantomData }
    }

    /// Gives up the callback and keeps its word, which somebody has to turn back, once.
    #[inline]
    pub(crate) fn into_word(self) -> Word {
        let word = self.word;
        mem::forget(self);
        word
    }

    /// # Safety
    ///
    /// `word` comes from [`into_word`](Callback::into_word) of a callback for the same `T`, and is given up here.
    #[inline]
    pub(crate) unsafe fn from_word(word: Word) -> Self {
        Callback { word, marker: PhantomData }
    }

    #[inline]
    fn into_won(self) -> Won<T> {
        // SAFETY: the callback owned the task behind its word, and gives it up. Such a task needs no place.
        unsafe { Won::new(self.into_word(), ptr::null_mut()) }
    }
}

impl<T> Drop for Callback<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `into_won`; the word is not used again, as this value is gone.
        drop(unsafe { Won::<T>::new(self.word, ptr::null_mut()) });
    }
}

/// Says that it is a callback: the closure's type is forgotten.
impl<T> fmt::Debug for Callback<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback(..)")
    }
}
