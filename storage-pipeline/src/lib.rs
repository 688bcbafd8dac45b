#![forbid(unsafe_code)]
//! A reference write pipeline on raft-rs and RocksDB.

pub mod config;
pub mod error;
pub mod engine;
pub mod txn;
pub mod command;

pub use config::{CompletionMode, Config, ConfigError, ReadPolicy, Releaser};
pub use error::{Cause, CommandError, Error, InvalidCommand, LockInfo, OpenError, Outcome, WriteConflict};
