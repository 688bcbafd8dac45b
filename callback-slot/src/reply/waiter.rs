//! Who waits for a reply: a thread that is parked, or a task of some executor.

#[cfg(feature = "future")]
use core::task::Waker;

#[cfg(all(feature = "wait", callback_slot_loom))]
use loom::thread::Thread;
#[cfg(all(feature = "wait", not(callback_slot_loom)))]
use std::thread::Thread;

/// The last one who asked and was told to wait.
pub(super) enum Waiter {
    #[cfg(feature = "wait")]
    Thread(Thread),
    #[cfg(feature = "future")]
    Task(Waker),
}

impl Waiter {
    pub(super) fn wake(self) {
        match self {
            #[cfg(feature = "wait")]
            Waiter::Thread(thread) => thread.unpark(),
            #[cfg(feature = "future")]
            Waiter::Task(waker) => waker.wake(),
        }
    }
}
