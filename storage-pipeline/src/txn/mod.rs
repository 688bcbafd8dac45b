//! Percolator on four column families, as TiKV does it. Hands commands a reader of versions, the records it finds,
//! and the changes that a transaction makes.
//!
//! | column family | key | value |
//! |---|---|---|
//! | `lock` | user key | [`Lock`]: who holds it, until when, and its value where that is short |
//! | `write` | user key, commit timestamp | [`Write`]: what happened then, and which start timestamp has the value |
//! | `default` | user key, start timestamp | a value longer than [`SHORT_VALUE_MAX_BYTES`] |
//! | `meta` | a name | the [safe point and the timestamp bound](meta::Number) |
//!
//! User keys are encoded so that they sort as the user's bytes do, and timestamps so that the newest comes first.

pub mod timestamp;
pub mod keys;
mod codec;
pub mod lock;
pub mod write;
pub mod meta;
pub mod reader;
pub mod scanner;
pub(crate) mod mvcc_txn;
pub(crate) mod commit;
pub(crate) mod rollback;
pub(crate) mod gc;

pub use keys::Key;
pub use lock::{Lock, LockType};
pub use reader::{MvccReader, TxnCommitRecord};
pub use scanner::{ScanOptions, Scanner};
pub use write::{Write, WriteType};

pub(crate) use mvcc_txn::MvccTxn;

/// Longest value in bytes that is stored inside a lock and its write record, which saves a read of it elsewhere.
pub const SHORT_VALUE_MAX_BYTES: usize = 255;
