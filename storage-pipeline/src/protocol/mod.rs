//! What clients and nodes say to each other: the messages of `proto/store.proto`, as generated, and conversions between
//! them and the crate's own types. Pure; hands commands to the server and outcomes to the client.
//!
//! What a node is sent may be anything: each conversion from the wire says what is [`Malformed`] by its field.

use std::fmt;

pub(crate) mod backoff;
pub(crate) mod tls;
pub(crate) mod dial;
mod command;
mod members;
mod response;
mod error;
mod reply;

pub(crate) use reply::{Refusal, Reply};

/// The version of what clients and nodes say to each other. It changes with every change that an older one would misread.
pub const PROTOCOL_VERSION: u32 = 1;

/// The messages and services of `proto/store.proto`.
pub(crate) mod wire {
    #![allow(missing_docs, unreachable_pub, clippy::all, clippy::too_many_lines)]

    tonic::include_proto!("storage_pipeline.store.v1");
}

/// A message that its types allow and that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The field.
    pub field: String,
    /// What is wrong with it.
    pub what: String,
}

impl Malformed {
    pub(crate) fn unset(field: &str) -> Self {
        Self {
            field: field.to_owned(),
            what: "it is not set, or by something that is not known here".to_owned(),
        }
    }

    fn unknown(field: &str, value: i32) -> Self {
        Self { field: field.to_owned(), what: format!("{value} is not known here") }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.what)
    }
}

impl std::error::Error for Malformed {}

/// Conversions in both directions between two types whose fields have the same names. A field that one of them has and the
/// other does not, fails to compile. Fields behind the semicolon are counts: `usize` here, `u64` on the wire.
macro_rules! same_fields {
    ($($own:ident { $($field:ident),* $(; $($count:ident),*)? })*) => {
        $(impl From<$own> for wire::$own {
            fn from($own { $($field,)* $($($count,)*)? }: $own) -> Self {
                Self { $($field,)* $($($count: $crate::protocol::to_u64($count),)*)? }
            }
        }

        impl From<wire::$own> for $own {
            fn from(wire::$own { $($field,)* $($($count,)*)? }: wire::$own) -> Self {
                Self { $($field,)* $($($count: $crate::protocol::to_usize($count),)*)? }
            }
        })*
    };
}
use same_fields;

/// A count that is too great for the other side is as great as it can be there.
fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
