//! The raftstore: one thread that drives raft, writes and syncs the log, and hands committed entries with their
//! proposals on to the apply pool.

pub(crate) mod msg;
pub(crate) mod router;
pub(crate) mod proposals;
pub(crate) mod reads;
pub(crate) mod peer;
mod leadership;
mod round;
mod appends;
mod together;
mod truncation;
pub(crate) mod membership;
#[cfg(feature = "simulator")]
mod inspect;
pub mod transport;
mod plausible;
pub mod status;
pub mod snapshot;
pub(crate) mod staging;
pub(crate) mod snapshot_sender;
pub mod log_storage;
pub mod entry;
pub(crate) mod store;
