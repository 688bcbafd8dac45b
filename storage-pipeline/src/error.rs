//! What a caller may be told: the three kinds of outcome, and the errors inside them. Every room hands these on.

use std::{borrow::Cow, fmt, path::PathBuf, sync::Arc, time::Duration};

use crate::{members::MemberChangeRefused, region::CurrentRegion};

/// How a command ended, as far as its caller can know. There are exactly three kinds, and they are never mixed:
/// an error inside `NotExecuted` promises that the command has had no effect and never will have one.
///
/// ```
/// use storage_pipeline::{Error, Outcome};
/// let refused: Outcome<u64> = Outcome::NotExecuted(Error::SchedTooBusy);
/// assert!(refused.is_not_executed());
/// assert_eq!(Outcome::Applied(7).into_result().unwrap(), 7);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an outcome says whether the command took effect"]
pub enum Outcome<T> {
    /// The command is done; a write is applied and visible to every later read.
    Applied(T),
    /// The command has had no effect and never will have one.
    NotExecuted(Error),
    /// The command was proposed and nobody here knows its fate: it may have taken effect, or may still, or never.
    Indeterminate(Cause),
}

impl<T> Outcome<T> {
    /// Turns an applied result into another type and leaves the other kinds as they are.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Applied(value) => Outcome::Applied(f(value)),
            Self::NotExecuted(error) => Outcome::NotExecuted(error),
            Self::Indeterminate(cause) => Outcome::Indeterminate(cause),
        }
    }

    /// The same as a `Result`, for `?`.
    ///
    /// # Errors
    /// [`CommandError`], which keeps *not executed* and *indeterminate* apart.
    pub fn into_result(self) -> Result<T, CommandError> {
        match self {
            Self::Applied(value) => Ok(value),
            Self::NotExecuted(error) => Err(CommandError::NotExecuted(error)),
            Self::Indeterminate(cause) => Err(CommandError::Indeterminate(cause)),
        }
    }

    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> OutcomeKind {
        match self {
            Self::Applied(_) => OutcomeKind::Applied,
            Self::NotExecuted(_) => OutcomeKind::NotExecuted,
            Self::Indeterminate(_) => OutcomeKind::Indeterminate,
        }
    }

    /// Whether the command is done.
    #[must_use]
    pub const fn is_applied(&self) -> bool {
        matches!(self, Self::Applied(_))
    }

    /// Whether the command never took and never will take effect.
    #[must_use]
    pub const fn is_not_executed(&self) -> bool {
        matches!(self, Self::NotExecuted(_))
    }

    /// Whether nobody here knows the command's fate.
    #[must_use]
    pub const fn is_indeterminate(&self) -> bool {
        matches!(self, Self::Indeterminate(_))
    }
}

/// Which kind of outcome it is: for those who count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    /// See [`Outcome::Applied`].
    Applied,
    /// See [`Outcome::NotExecuted`].
    NotExecuted,
    /// See [`Outcome::Indeterminate`].
    Indeterminate,
}

impl OutcomeKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Applied, Self::NotExecuted, Self::Indeterminate];

    /// Its name, for logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::NotExecuted => "not_executed",
            Self::Indeterminate => "indeterminate",
        }
    }
}

/// The two ways in which a command can fail, for use with `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// See [`Outcome::NotExecuted`].
    NotExecuted(Error),
    /// See [`Outcome::Indeterminate`].
    Indeterminate(Cause),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotExecuted(error) => write!(f, "not executed: {error}"),
            Self::Indeterminate(cause) => write!(f, "outcome unknown: {cause}"),
        }
    }
}

impl std::error::Error for CommandError {}

/// Why nobody knows the fate of a command that was proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The caller's deadline passed while the proposal was on its way. It may still be applied.
    DeadlineExceeded,
    /// This replica lost the leadership of the proposal's term before the entry was applied.
    LeadershipLost,
    /// A snapshot brought this replica past the entry, which may be among those that it stands for.
    SnapshotInstalled,
    /// The store stopped before the entry was applied.
    Closed,
    /// The store poisoned itself; the text is the first fault.
    Poisoned(Arc<str>),
    /// The holder of the callback vanished without an answer: a fault of this library that the must-call guard
    /// turned into an honest answer.
    Dropped,
    /// The connection to the node that had the command was lost; the text says how.
    ConnectionLost(Arc<str>),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlineExceeded => f.write_str("the deadline passed after the proposal was made"),
            Self::LeadershipLost => f.write_str("leadership was lost before the entry was applied"),
            Self::SnapshotInstalled => f.write_str("a snapshot brought this replica past the entry"),
            Self::Closed => f.write_str("the store closed before the entry was applied"),
            Self::Poisoned(why) => write!(f, "the store stopped after a fault: {why}"),
            Self::Dropped => f.write_str("the callback was dropped without an answer"),
            Self::ConnectionLost(why) => write!(f, "the connection to the node was lost: {why}"),
        }
    }
}

/// Why a command was not executed. Names follow TiKV and Percolator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The command itself is malformed; nothing was locked or read.
    InvalidCommand(InvalidCommand),
    /// Too many commands or bytes are in flight. Try again later.
    SchedTooBusy,
    /// The deadline passed before the command was proposed.
    DeadlineExceeded,
    /// This replica does not lead; the hint names the leader where it is known.
    NotLeader {
        /// Id of the replica that is believed to lead.
        leader: Option<u64>,
    },
    /// An entry of another term was applied where this proposal would have stood.
    StaleCommand,
    /// A command is for one region, and not all of its keys are in that one. Split it by region.
    KeyNotInRegion {
        /// The first key that is elsewhere, as the user gave it, or the end of a range that ends elsewhere.
        key: Vec<u8>,
        /// Id of the region that the command is for.
        region: u64,
        /// The region's first key; empty where it has no bound.
        start_key: Vec<u8>,
        /// The key behind the region's last one; empty where it has no bound.
        end_key: Vec<u8>,
    },
    /// The region that the command names is not one of the store's.
    RegionNotFound {
        /// Its id.
        region: u64,
    },
    /// The command has no keys and names no region, and the store has several.
    RegionNotNamed,
    /// The command names another epoch of its region than the one in which that is.
    EpochNotMatch(Box<CurrentRegion>),
    /// The command names an epoch of its region, and which one that is in is not decided: a change of members has not been
    /// applied, or may not have been where a leader has just begun. Ask again.
    EpochPending {
        /// Id of the region.
        region: u64,
    },
    /// The key is locked by another transaction.
    KeyIsLocked(Box<LockInfo>),
    /// Another transaction committed after this one started.
    WriteConflict(Box<WriteConflict>),
    /// The transaction's lock on this key is gone, so it cannot be committed: it was rolled back or never prewritten.
    TxnLockNotFound {
        /// Start timestamp of the transaction.
        start_ts: u64,
        /// The key, as the user gave it.
        key: Vec<u8>,
    },
    /// The transaction is committed, so it cannot be rolled back.
    Committed {
        /// Start timestamp of the transaction.
        start_ts: u64,
        /// Its commit timestamp.
        commit_ts: u64,
    },
    /// No trace of the transaction was found at its primary key.
    TxnNotFound {
        /// Start timestamp of the transaction.
        start_ts: u64,
        /// The primary key, as the user gave it.
        key: Vec<u8>,
    },
    /// An insert found that the key exists.
    AlreadyExist {
        /// The key, as the user gave it.
        key: Vec<u8>,
    },
    /// The commit timestamp is below what a reader was promised.
    CommitTsExpired {
        /// Start timestamp of the transaction.
        start_ts: u64,
        /// The commit timestamp that was refused.
        commit_ts: u64,
        /// The least commit timestamp that the lock allows.
        min_commit_ts: u64,
    },
    /// The primary key of the lock differs from the one the request names.
    PrimaryMismatch {
        /// The primary key that the lock names, as the user gave it.
        primary: Vec<u8>,
    },
    /// The read timestamp lies below the GC safe point, so versions it needs may be gone.
    GcTooEarly {
        /// The timestamp asked for.
        read_ts: u64,
        /// The safe point.
        safe_point: u64,
    },
    /// A blocking call was made on a thread of the pipeline. Use the callback form there.
    WouldBlockPipeline,
    /// The members of the group cannot be changed so.
    MemberChange(MemberChangeRefused),
    /// The store is closing or closed.
    Closed,
    /// The store poisoned itself after a fault and serves nothing more; the text is the first fault.
    Poisoned(Arc<str>),
    /// Stored bytes could not be decoded. Nothing was changed.
    Corrupt(Arc<str>),
    /// The storage engine failed.
    Engine(Arc<str>),
    /// The holder of the callback vanished before the command was proposed: a fault of this library that the
    /// must-call guard turned into an honest answer.
    Dropped,
    /// A node could make nothing of the request; the text says why.
    Refused(Arc<str>),
    /// No node could be reached that might execute the command; the text says what the last attempt met.
    Unreachable(Arc<str>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidCommand(why) => write!(f, "invalid command: {why}"),
            Self::SchedTooBusy => f.write_str("too much is in flight; try again later"),
            Self::DeadlineExceeded => f.write_str("the deadline passed before the command was proposed"),
            Self::NotLeader { leader: Some(id) } => write!(f, "not the leader; try replica {id}"),
            Self::NotLeader { leader: None } => f.write_str("not the leader; no leader is known"),
            Self::KeyNotInRegion { key, region, start_key, end_key } => {
                let [key, start, end] = [key, start_key, end_key].map(|key| key.escape_ascii());
                write!(f, "\"{key}\" is not in region {region}, which is from \"{start}\" to \"{end}\"")
            }
            Self::RegionNotFound { region } => write!(f, "the store has no region {region}"),
            Self::RegionNotNamed => {
                f.write_str("the command has no keys, and the store has several regions: name one")
            }
            Self::EpochNotMatch(current) => {
                let CurrentRegion { region, epoch } = &**current;
                let [start, end] = [&region.start_key, &region.end_key].map(|key| key.escape_ascii());
                write!(f, "region {} is at epoch {epoch}, from \"{start}\" to \"{end}\"", region.id)
            }
            Self::EpochPending { region } => {
                write!(f, "a change of region {region}'s members may not be applied yet; try again later")
            }
            Self::StaleCommand => f.write_str("another term's entry took this command's place"),
            Self::KeyIsLocked(lock) => write!(f, "{lock}"),
            Self::WriteConflict(conflict) => write!(f, "{conflict}"),
            Self::TxnLockNotFound { start_ts, key } => {
                write!(f, "transaction {start_ts} holds no lock on key \"{}\"", key.escape_ascii())
            }
            Self::Committed { start_ts, commit_ts } => {
                write!(f, "transaction {start_ts} is already committed at {commit_ts}")
            }
            Self::TxnNotFound { start_ts, key } => {
                write!(f, "no trace of transaction {start_ts} at its primary key \"{}\"", key.escape_ascii())
            }
            Self::AlreadyExist { key } => write!(f, "key \"{}\" already exists", key.escape_ascii()),
            Self::CommitTsExpired { start_ts, commit_ts, min_commit_ts } => {
                write!(
                    f,
                    "transaction {start_ts} must commit at {min_commit_ts} or later, not at {commit_ts}"
                )
            }
            Self::PrimaryMismatch { primary } => {
                write!(f, "the lock's primary key is \"{}\"", primary.escape_ascii())
            }
            Self::GcTooEarly { read_ts, safe_point } => {
                write!(f, "timestamp {read_ts} lies below the GC safe point {safe_point}")
            }
            Self::WouldBlockPipeline => {
                f.write_str("a blocking call on a pipeline thread; use the callback form")
            }
            Self::MemberChange(why) => write!(f, "{why}"),
            Self::Closed => f.write_str("the store is closed"),
            Self::Poisoned(why) => write!(f, "the store stopped after a fault: {why}"),
            Self::Corrupt(what) => write!(f, "stored bytes are corrupt: {what}"),
            Self::Engine(what) => write!(f, "storage engine: {what}"),
            Self::Dropped => f.write_str("the callback was dropped before the command was proposed"),
            Self::Refused(why) => write!(f, "the node refused the request: {why}"),
            Self::Unreachable(why) => write!(f, "no node could be reached: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// What is wrong with a command, named by its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidCommand {
    /// A key is empty.
    EmptyKey {
        /// Name of the field.
        field: Cow<'static, str>,
    },
    /// A key, a value, a whole command, what it comes to in the log, or the answer to a read is larger than the limit.
    TooLarge {
        /// Name of the field.
        field: Cow<'static, str>,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A list that must name something is empty.
    EmptyList {
        /// Name of the field.
        field: Cow<'static, str>,
    },
    /// A key is named twice.
    DuplicateKey {
        /// Name of the field.
        field: Cow<'static, str>,
        /// The key.
        key: Vec<u8>,
    },
    /// A timestamp must be greater than another one.
    TimestampOrder {
        /// Name of the field that must be the greater.
        field: Cow<'static, str>,
        /// Its value.
        value: u64,
        /// What it must exceed.
        must_exceed: u64,
    },
    /// A timestamp or limit lies outside its range.
    OutOfRange {
        /// Name of the field.
        field: Cow<'static, str>,
        /// Its value.
        value: u64,
        /// The range in words.
        range: Cow<'static, str>,
    },
}

impl fmt::Display for InvalidCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyKey { field } => write!(f, "{field}: the key is empty"),
            Self::TooLarge { field, size, limit } => write!(f, "{field}: {size} bytes, the limit is {limit}"),
            Self::EmptyList { field } => write!(f, "{field}: the list is empty"),
            Self::DuplicateKey { field, key } => {
                write!(f, "{field}: key \"{}\" is named twice", key.escape_ascii())
            }
            Self::TimestampOrder { field, value, must_exceed } => {
                write!(f, "{field}: {value} must be greater than {must_exceed}")
            }
            Self::OutOfRange { field, value, range } => write!(f, "{field}: {value} is not {range}"),
        }
    }
}

/// A lock that stood in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// The locked key, as the user gave it.
    pub key: Vec<u8>,
    /// The transaction's primary key, as the user gave it.
    pub primary: Vec<u8>,
    /// Start timestamp of the transaction that holds the lock.
    pub start_ts: u64,
    /// Time to live of the lock, counted in milliseconds from the physical part of `start_ts`.
    pub ttl_ms: u64,
    /// How many keys the transaction wrote.
    pub txn_size: u64,
    /// The least timestamp at which the transaction may commit.
    pub min_commit_ts: u64,
}

impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, start_ts, ttl_ms, .. } = self;
        write!(f, "key \"{}\" is locked by transaction {start_ts} for {ttl_ms} ms", key.escape_ascii())
    }
}

/// A commit that stood in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteConflict {
    /// The key, as the user gave it.
    pub key: Vec<u8>,
    /// The transaction's primary key, as the user gave it.
    pub primary: Vec<u8>,
    /// Start timestamp of the transaction that was refused.
    pub start_ts: u64,
    /// Start timestamp of the transaction that got there first.
    pub conflict_start_ts: u64,
    /// Its commit timestamp.
    pub conflict_commit_ts: u64,
}

impl fmt::Display for WriteConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, start_ts, conflict_start_ts, conflict_commit_ts, .. } = self;
        write!(
            f,
            "key \"{}\": transaction {conflict_start_ts} committed at {conflict_commit_ts}, \
             after transaction {start_ts} started",
            key.escape_ascii()
        )
    }
}

/// Why a store could not be opened. Nothing was changed on disk unless the text says so.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A value of the configuration is out of its range.
    Config(crate::config::ConfigError),
    /// Another process has the data directory open.
    Locked {
        /// The data directory.
        path: PathBuf,
    },
    /// The data directory was written by an older version, whose layout is not read any more.
    OlderFormat {
        /// The data directory.
        path: PathBuf,
        /// The format it has.
        found: u32,
        /// The format that this version reads.
        supported: u32,
    },
    /// It was written by a newer version.
    NewerFormat {
        /// The data directory.
        path: PathBuf,
        /// The format it has.
        found: u32,
        /// The newest format this version reads.
        supported: u32,
    },
    /// The data directory was made with another kind of raft log than the configuration asks for.
    OtherRaftLog {
        /// Where that log is.
        path: PathBuf,
        /// What keeps it.
        found: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// The data directory belongs to another node than the one that was started on it.
    OtherNode {
        /// The data directory.
        path: PathBuf,
        /// Whose it is.
        found: NodeIdentity,
        /// Who was started on it.
        wanted: NodeIdentity,
    },
    /// The data directory cannot be trusted.
    Corrupt {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The operating system refused something.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The refusal.
        source: std::io::Error,
    },
    /// RocksDB refused something.
    Engine {
        /// The database's directory.
        path: PathBuf,
        /// RocksDB's own words.
        what: String,
    },
    /// The replica did not become ready in time.
    NotReady {
        /// How long it was given.
        waited: Duration,
        /// What is known about the reason.
        what: String,
    },
}

/// Which node of which cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// Id of the cluster. A directory that was never a node's names none.
    pub cluster_id: Option<u64>,
    /// Id of the node, which is that of its replica.
    pub node_id: u64,
}

impl fmt::Display for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.node_id)?;
        self.cluster_id.map_or(Ok(()), |id| write!(f, " of cluster {id}"))
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(why) => write!(f, "configuration: {why}"),
            Self::Locked { path } => write!(f, "{}: another process has it open", path.display()),
            Self::OlderFormat { path, found, supported } => {
                write!(f, "{}: format {found} is older than {supported}", path.display())
            }
            Self::NewerFormat { path, found, supported } => {
                write!(f, "{}: format {found} is newer than {supported}", path.display())
            }
            Self::OtherRaftLog { path, found, wanted } => {
                write!(f, "{}: the raft log is kept by {found}, not by {wanted}", path.display())
            }
            Self::OtherNode { path, found, wanted } => {
                write!(f, "{}: it belongs to {found}, not to {wanted}", path.display())
            }
            Self::Corrupt { path, what } => write!(f, "{}: corrupt: {what}", path.display()),
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Engine { path, what } => write!(f, "{}: {what}", path.display()),
            Self::NotReady { waited, what } => {
                write!(f, "not ready after {:.1} s: {what}", waited.as_secs_f64())
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(why) => Some(why),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
