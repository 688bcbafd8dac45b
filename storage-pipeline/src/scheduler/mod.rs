//! The scheduler: admission, latches, and the end of every command. What runs it, and on which thread, is the
//! completion mode's choice; the steps are here once. Hands on jobs that hold their latches to the local reader.

pub mod task;
pub mod latches;
pub mod in_flight;
#[cfg(feature = "store")]
pub(crate) mod admit;
#[cfg(feature = "store")]
mod propose;
#[cfg(feature = "store")]
pub(crate) mod settle;
#[cfg(feature = "store")]
pub(crate) mod single_thread;
#[cfg(all(test, feature = "store"))]
pub(crate) mod testing;

#[cfg(feature = "store")]
pub(crate) use admit::Scheduler;
