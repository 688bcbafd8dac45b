#![forbid(unsafe_code)]
//! A reference write pipeline on raft-rs and RocksDB. Its caller is told the outcome of a write exactly once, through
//! a lock-free slot, by whichever thread the [`CompletionMode`] names.
//!
//! Start at [`storage::Storage`]; the modules stand in the order in which a write moves through them.

pub(crate) mod primitive;
#[cfg(feature = "store")]
pub(crate) mod clock;
#[cfg(feature = "store")]
pub(crate) mod planted;
pub mod completion_mode;
pub mod config;
pub mod error;
pub mod members;
pub mod observe;
#[cfg(feature = "failpoints")]
pub mod fail_points;
#[cfg(feature = "store")]
pub mod spans;
pub mod mailbox;
#[cfg(feature = "store")]
pub(crate) mod patience;
#[cfg(feature = "store")]
pub mod storage;
#[cfg(any(feature = "client", feature = "store"))]
pub mod client;
pub mod command;
pub mod txn;
pub mod scheduler;
pub mod region;
#[cfg(feature = "protocol")]
pub mod protocol;
#[cfg(feature = "store")]
pub(crate) mod local_reader;
#[cfg(feature = "store")]
pub(crate) mod worker_pool;
#[cfg(feature = "store")]
pub mod raftstore;
#[cfg(feature = "store")]
pub(crate) mod apply;
pub mod engine;
#[cfg(feature = "store")]
pub(crate) mod maintenance;
#[cfg(feature = "server")]
pub mod check;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "simulator")]
pub mod simulator;
#[cfg(feature = "store")]
pub(crate) mod raft_log;
#[cfg(feature = "store")]
pub(crate) mod threads;

#[cfg(any(feature = "client", feature = "store"))]
pub use client::TransactionError;
#[cfg(feature = "client")]
pub use client::remote::{Client, ClientConfig};
pub use completion_mode::{CompletionMode, Releaser, UnknownMode};
pub use config::{Config, ConfigError, RaftLog, ReadPolicy};
pub use error::{
    Cause, CommandError, Error, InvalidCommand, LockInfo, NodeIdentity, OpenError, Outcome, OutcomeKind,
    WriteConflict,
};
#[cfg(feature = "store")]
pub use storage::Storage;

/// A transaction on a store in this process.
#[cfg(feature = "store")]
pub type Transaction = client::transaction::Transaction<Storage>;

/// How it is built and what happens in it: the project's own documents, compiled with the code they describe.
#[cfg(feature = "store")]
pub mod docs {
    #[doc = include_str!("../../docs/architecture.md")]
    pub mod architecture {}
    #[doc = include_str!("../../docs/write-path.md")]
    pub mod write_path {}
    #[doc = include_str!("../../docs/raft-log.md")]
    pub mod raft_log {}
    #[cfg(feature = "server")]
    #[doc = include_str!("../../docs/server.md")]
    pub mod server {}
    #[doc = include_str!("../../docs/testing.md")]
    pub mod testing {}
}

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
