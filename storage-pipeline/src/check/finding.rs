//! What a check comes to: a report, its findings, and why there is none.

use std::{error, fmt, io, path::PathBuf, sync::Arc};

use crate::{
    engine::Cf,
    error::{NodeIdentity, OpenError},
};

/// What was found in a store.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Whose store it is. Nobody's, where nothing was ever written.
    pub owner: Option<NodeIdentity>,
    /// Its regions.
    pub regions: Vec<CheckedRegion>,
    /// How many keys were read in each column family.
    pub keys: Vec<(Cf, u64)>,
    /// What is wrong. None: the store is sound.
    pub findings: Vec<Finding>,
}

/// How far a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedRegion {
    /// Its id.
    pub id: u64,
    /// Index of the last entry of its log that is applied.
    pub applied_index: u64,
    /// The term that it is in.
    pub term: u64,
}

/// Something that is wrong with a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum Finding {
    /// A start refuses it: the log does not recover, does not fit the data, or one of them does not open.
    DoesNotStart(OpenError),
    /// A start stops with a fault.
    Fault(Arc<str>),
    /// What a region had applied is not in its log any more.
    NotAppliedAgain {
        /// Id of the region.
        region: u64,
        /// How far a start comes.
        applied_index: u64,
        /// How far the data says that it was.
        seen: u64,
    },
    /// A key or its value cannot be decoded, or contradicts itself.
    Record {
        /// Where it is.
        cf: Cf,
        /// The key, as it is stored.
        key: Vec<u8>,
        /// What is wrong.
        what: String,
    },
    /// A lock or a write record stands for a value that is not there.
    NoValue {
        /// Where the record is.
        cf: Cf,
        /// Its key, as it is stored.
        key: Vec<u8>,
        /// The start timestamp under which the value should be.
        start_ts: u64,
    },
}

/// Why nothing can be said of a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum CheckError {
    /// There is none.
    NoStore {
        /// Where it should be.
        path: PathBuf,
    },
    /// It is in use.
    InUse {
        /// What is locked.
        path: PathBuf,
    },
    /// It cannot be copied.
    Io {
        /// What could not be read or written.
        path: PathBuf,
        /// The operating system's refusal.
        source: io::Error,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotStart(why) => write!(f, "it does not start: {why}"),
            Self::Fault(why) => write!(f, "it starts and stops with a fault: {why}"),
            Self::NotAppliedAgain { region, applied_index, seen } => {
                write!(f, "region {region} had applied entry {seen}, and a start comes to {applied_index}")
            }
            Self::Record { cf, key, what } => write!(f, "{} {}: {what}", cf.name(), key.escape_ascii()),
            Self::NoValue { cf, key, start_ts } => {
                write!(
                    f,
                    "{} {}: its value of timestamp {start_ts} is missing",
                    cf.name(),
                    key.escape_ascii()
                )
            }
        }
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStore { path } => write!(f, "{}: there is no store", path.display()),
            Self::InUse { path } => write!(f, "{}: the store is in use", path.display()),
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl error::Error for CheckError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
