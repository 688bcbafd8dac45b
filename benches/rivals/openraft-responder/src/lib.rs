//! Plugs the slot into openraft: a write that goes through raft answers through a callback.
//!
//! openraft hands a write's answer to a [`Responder`], by default the sending half of a oneshot channel. With a
//! [`CallbackResponder`] the answer runs the caller's code at once, on the task that knows it, and
//!
//! * **somebody else may answer first**: a [`Handle`] in the hands of a timer, or of whoever cancels, races with raft, and
//!   exactly one of them wins;
//! * **no answer gets lost**: a responder that is dropped uncalled, because the node shuts down or its core has failed,
//!   answers [`Dropped`].
//!
//! Responder, handle, count and closure are one allocation.

use std::fmt;

use callback_slot::SharedSlot;
use openraft::{OptionalSend, RaftTypeConfig, raft::responder::Responder};

/// The write was given up without an answer. Whether it takes effect is not known: it may have been proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped;

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the write was given up without an answer")
    }
}

impl std::error::Error for Dropped {}

/// What the callback gets.
pub type Answer<T> = Result<T, Dropped>;

/// Answers a write by calling a closure, exactly once.
///
/// For a type configuration: `type Responder<T> = CallbackResponder<T> where T: OptionalSend + 'static;`
#[derive(Debug)]
pub struct CallbackResponder<T>(SharedSlot<Answer<T>>);

impl<T: 'static> CallbackResponder<T> {
    /// A responder that calls `closure` with the answer, or with [`Dropped`].
    ///
    /// The closure runs on raft's own task: it should be short, and must not block.
    pub fn new(closure: impl FnOnce(Answer<T>) + Send + 'static) -> Self {
        CallbackResponder(SharedSlot::must_call(closure, || Err(Dropped)))
    }

    /// A handle for somebody else who may answer, such as a timer.
    ///
    /// It keeps the callback waiting: [`Dropped`] is answered when the responder *and* all handles are gone.
    #[must_use]
    pub fn handle(&self) -> Handle<T> {
        Handle(self.0.clone())
    }
}

impl<C, T> Responder<C, T> for CallbackResponder<T>
where
    C: RaftTypeConfig,
    T: OptionalSend + 'static,
{
    fn on_complete(self, result: T) {
        // Whoever was first has told the caller; this answer has nowhere to go.
        let _: Result<(), _> = self.0.complete(Ok(result));
    }
}

/// Answers in raft's place, if raft has not answered yet.
#[derive(Clone, Debug)]
pub struct Handle<T>(SharedSlot<Answer<T>>);

impl<T> Handle<T> {
    /// Answers with `result`.
    ///
    /// # Errors
    ///
    /// Gives the result back if the caller has been told already.
    pub fn answer(&self, result: Answer<T>) -> Result<(), Answer<T>> {
        self.0.complete(result).map_err(callback_slot::CompleteError::into_inner)
    }

    /// Whether nobody has answered yet: a plain load, for a timer that looks after many.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.0.is_armed()
    }
}
