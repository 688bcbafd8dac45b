//! What a caller can ask for. A command is validated, names the keys it latches, and is then a pure function from a
//! snapshot to [`Processed`]: the changes to propose and the response that its caller gets.
//!
//! One command a file, in the order of a transaction's life: `prewrite`, `commit`, then what other transactions do
//! about it, then reads, upkeep and raw keys. No command knows a thread, a channel or a clock.

use crate::{
    config::Config,
    engine::{Modify, Snapshot},
    error::{Error, InvalidCommand},
};

mod execute;
mod latch;
mod validate;
mod response;
mod mutation;
mod prewrite;
mod commit;
mod rollback;
mod cleanup;
mod check_txn_status;
mod resolve_lock;
mod txn_heart_beat;
mod get;
mod scan;
mod scan_lock;
mod gc;
mod scan_gc_keys;
mod raw;
mod raw_read;
mod allocate_timestamps;

pub use allocate_timestamps::AllocateTimestamps;
pub use check_txn_status::CheckTxnStatus;
pub use cleanup::Cleanup;
pub use commit::Commit;
pub use gc::Gc;
pub use get::{BatchGet, Get};
pub use mutation::Mutation;
pub use prewrite::Prewrite;
pub use raw::{RawCompareAndSwap, RawDelete, RawPut};
pub use raw_read::{RawGet, RawScan};
pub use resolve_lock::ResolveLock;
pub use response::{CompareAndSwapResult, GcKeys, GcResult, KvPair, Response, TimestampRange, TxnStatus};
pub use rollback::Rollback;
pub use scan::Scan;
pub use scan_gc_keys::ScanGcKeys;
pub use scan_lock::ScanLock;
pub use txn_heart_beat::TxnHeartBeat;

use execute::Execute;

/// What a command's check came to: the changes to propose (none for a read, or where nothing needs to change), and
/// the response that the caller gets once they are applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processed {
    /// The changes, in the order in which they take effect.
    pub modifies: Vec<Modify>,
    /// What the caller gets.
    pub response: Response,
}

impl Processed {
    /// A response that changes nothing.
    pub(crate) fn unchanged(response: Response) -> Self {
        Self { modifies: Vec::new(), response }
    }
}

/// A command with a typed answer: what a front door takes, so that `Get` yields a value and `Scan` yields pairs.
pub trait Request: Into<Command> {
    /// What the caller gets.
    type Output: Send + 'static;

    /// The answer inside the response of this command; `None` only for the response of another command.
    fn output(response: Response) -> Option<Self::Output>;
}

/// A command of any kind, which is answered with a response of any kind.
impl Request for Command {
    type Output = Response;

    fn output(response: Response) -> Option<Response> {
        Some(response)
    }
}

/// Makes the enum of all commands and hands each call on to the command itself.
macro_rules! commands {
    ($($(#[$doc:meta])* $command:ident,)*) => {
        /// A command of any kind, as the pipeline carries it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Command { $($(#[$doc])* $command($command),)* }

        $(impl From<$command> for Command {
            fn from(command: $command) -> Self {
                Self::$command(command)
            }
        })*

        impl Command {
            /// Its name, for logs and metrics.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$command(_) => stringify!($command),)* }
            }

            /// Whether it only reads: it latches nothing and proposes nothing.
            #[must_use]
            pub fn is_read(&self) -> bool {
                match self { $(Self::$command(_) => <$command as Execute>::IS_READ,)* }
            }

            /// Whether it reads nothing, so that [`process_blind`](Self::process_blind) decides it.
            #[must_use]
            pub fn is_blind(&self) -> bool {
                match self { $(Self::$command(_) => <$command as Execute>::IS_BLIND,)* }
            }

            /// Checks every field, before any latch is taken.
            ///
            /// ```
            /// use storage_pipeline::{Config, command::{Command, RawGet}};
            /// let command = Command::from(RawGet { key: Vec::new() });
            /// let error = command.validate(&Config::new("/var/lib/store")).unwrap_err();
            /// assert_eq!(error.to_string(), "key: the key is empty");
            /// ```
            ///
            /// # Errors
            /// The first field that is wrong, by its name.
            pub fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
                let most = if self.is_read() { usize::MAX } else { config.max_entry_bytes };
                validate::total(self.size_bytes(), most)?;
                match self { $(Self::$command(command) => command.validate(config),)* }
            }

            /// Hashes of the keys it latches, sorted and each named once. Empty for a read, and for no other command
            /// that passes [`validate`](Self::validate).
            #[must_use]
            pub fn latch_hashes(&self) -> Box<[u64]> {
                match self { $(Self::$command(command) => latch::sorted(command.latches()),)* }
            }

            /// Calls `each` for every key that it names, as the user gave it.
            pub(crate) fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
                match self { $(Self::$command(command) => command.for_each_key(each),)* }
            }

            /// The range of keys that it reads, where it reads one. An empty end means no bound.
            pub(crate) fn key_range(&self) -> Option<(&[u8], &[u8])> {
                match self { $(Self::$command(command) => command.key_range(),)* }
            }

            /// The bytes of its keys and values with what each costs besides, for the bound of bytes in flight.
            #[must_use]
            pub fn size_bytes(&self) -> usize {
                match self { $(Self::$command(command) => command.size_bytes(),)* }
            }

            /// What the command changes and answers whatever the store holds; it needs no snapshot then.
            ///
            /// ```
            /// use storage_pipeline::command::{Command, RawGet, RawPut};
            /// let put = Command::from(RawPut { key: b"k".to_vec(), value: b"v".to_vec() });
            /// assert!(put.is_blind());
            /// assert_eq!(put.process_blind().unwrap().modifies.len(), 1);
            /// let get = Command::from(RawGet { key: b"k".to_vec() });
            /// assert!(!get.is_blind() && get.process_blind().is_err());
            /// ```
            ///
            /// # Errors
            /// The command itself, where that depends on what the store holds.
            pub fn process_blind(self) -> Result<Processed, Self> {
                match self { $(Self::$command(command) => command.process_blind().map_err(Self::from),)* }
            }

            /// Decides on a snapshot what the command changes and answers. The snapshot must have been taken while
            /// the command's latches were held.
            ///
            /// # Errors
            /// Why the command is not executed. Nothing must be proposed then.
            pub fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
                match self { $(Self::$command(command) => command.process(snapshot),)* }
            }
        }
    };
}

commands! {
    /// First phase of a commit: checks for conflicts, locks the keys, stores the values.
    Prewrite,
    /// Second phase of a commit: turns locks into committed versions.
    Commit,
    /// Rolls a transaction back on a list of keys.
    Rollback,
    /// Rolls a transaction back on one key, if its lock has expired.
    Cleanup,
    /// Asks a primary key for a transaction's fate, and decides it where the transaction was abandoned.
    CheckTxnStatus,
    /// Commits or rolls back the locks that a settled transaction left behind.
    ResolveLock,
    /// Prolongs the life of a transaction.
    TxnHeartBeat,
    /// Reads one key.
    Get,
    /// Reads several keys.
    BatchGet,
    /// Reads a range of keys.
    Scan,
    /// Lists old locks.
    ScanLock,
    /// Removes versions that nobody can read any more.
    Gc,
    /// Lists keys that have such versions.
    ScanGcKeys,
    /// Sets a raw key.
    RawPut,
    /// Reads a raw key.
    RawGet,
    /// Removes a raw key.
    RawDelete,
    /// Reads a range of raw keys.
    RawScan,
    /// Sets a raw key if it has the expected value.
    RawCompareAndSwap,
    /// Reserves a range of timestamps.
    AllocateTimestamps,
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
