//! The numbers that the pipeline itself keeps in the `meta` column family. Hands on their values and changes.

use crate::{
    engine::{Cf, Modify, Snapshot},
    error::Error,
};

/// A number under a name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Reads below it are refused, since versions they need may be gone. It never falls.
    SafePoint,
    /// No timestamp at or above it was handed out. It never falls.
    TimestampBound,
    /// Id of the replica that the data belongs to. It never changes.
    Replica,
    /// Id of the cluster to which the node belongs that the data is of, where it is of one. It never changes.
    Cluster,
    /// Entries up to this index are in the data for good: it was written behind a sync that covers them. Who finds an
    /// older one has lost the newer one and nothing else.
    Synced,
    /// Counts the changes of a region's members; 1 where it was never set.
    ConfVer,
}

impl Number {
    /// The key of the number in [`Cf::Meta`].
    #[must_use]
    pub const fn key(self) -> &'static [u8] {
        match self {
            Self::SafePoint => b"gc_safe_point",
            Self::TimestampBound => b"timestamp_bound",
            Self::Replica => b"replica",
            Self::Cluster => b"cluster",
            Self::Synced => b"synced",
            Self::ConfVer => b"conf_ver",
        }
    }

    /// The stored number, if it was ever set.
    ///
    /// # Errors
    /// The engine's refusal, or [`Error::Corrupt`].
    pub fn load(self, snapshot: &dyn Snapshot) -> Result<Option<u64>, Error> {
        let Some(bytes) = snapshot.get(Cf::Meta, self.key())? else {
            return Ok(None);
        };
        let number = bytes.as_slice().try_into().map_err(|_| {
            Error::Corrupt(format!("\"{}\" is not a number", self.key().escape_ascii()).into())
        })?;
        Ok(Some(u64::from_le_bytes(number)))
    }

    /// The change that sets it.
    #[must_use]
    pub fn put(self, number: u64) -> Modify {
        Modify::Put(Cf::Meta, self.key().to_vec(), number.to_le_bytes().to_vec())
    }
}

/// The safe point; zero before the first garbage collection.
///
/// # Errors
/// The engine's refusal, or [`Error::Corrupt`].
pub fn safe_point(snapshot: &dyn Snapshot) -> Result<u64, Error> {
    Ok(Number::SafePoint.load(snapshot)?.unwrap_or(0))
}

/// Refuses a timestamp below the safe point.
///
/// # Errors
/// [`Error::GcTooEarly`], the engine's refusal, or [`Error::Corrupt`].
pub fn check_safe_point(snapshot: &dyn Snapshot, read_ts: u64) -> Result<(), Error> {
    match safe_point(snapshot)? {
        safe_point if read_ts < safe_point => Err(Error::GcTooEarly { read_ts, safe_point }),
        _ => Ok(()),
    }
}
