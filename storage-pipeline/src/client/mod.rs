//! What a user of the store holds on the client's side: the source of timestamps, transactions on a store in this process
//! or on a cluster, and the connection to a cluster.

use std::fmt;

use crate::error::{Cause, CommandError};

#[cfg(feature = "store")]
pub mod oracle;
pub mod executor;
mod past_locks;
pub mod transaction;
#[cfg(feature = "store")]
mod embedded;
#[cfg(feature = "client")]
pub mod remote;

/// How a transaction failed to commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionError {
    /// Nothing was written, and nothing of it will be.
    RolledBack(CommandError),
    /// The commit was proposed and the store does not know its fate; the next reader of its keys finds out.
    Undetermined(Cause),
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RolledBack(why) => write!(f, "the transaction was rolled back: {why}"),
            Self::Undetermined(cause) => {
                write!(f, "nobody knows whether the transaction is committed: {cause}")
            }
        }
    }
}

impl std::error::Error for TransactionError {}
