//! The data engine: what apply writes a batch to and what commands read a snapshot of. Hands on owned snapshots.

use std::{fmt, sync::Arc};

pub mod memory;
pub mod modify;
#[cfg(feature = "store")]
pub(crate) mod region;
#[cfg(feature = "store")]
pub mod rocks;

pub use modify::Modify;

use crate::error::Error;

/// A column family. Percolator's three are `Default`, `Lock` and `Write`; raw keys have one of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cf {
    /// Long values, by key and start timestamp.
    Default = 0,
    /// Locks, by key.
    Lock = 1,
    /// Write records, by key and commit timestamp, newest first.
    Write = 2,
    /// Raw keys and values.
    Raw = 3,
    /// The pipeline's own state: applied index, membership, format version, timestamp bound, safe point.
    Meta = 4,
}

impl Cf {
    /// All column families, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Default, Self::Lock, Self::Write, Self::Raw, Self::Meta];

    /// The name RocksDB knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Lock => "lock",
            Self::Write => "write",
            Self::Raw => "raw",
            Self::Meta => "meta",
        }
    }

    /// The column family with this number, if there is one.
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// An engine refused to read or write. The text is the engine's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError(pub Arc<str>);

impl EngineError {
    /// An error with these words.
    pub fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string().into())
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EngineError {}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        Self::Engine(error.0)
    }
}

/// One atomic write: all of it is applied, or nothing.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    modifies: Vec<Modify>,
}

impl WriteBatch {
    /// Adds a change. Later changes of the same key win.
    pub fn push(&mut self, modify: Modify) {
        self.modifies.push(modify);
    }

    /// The changes, in the order in which they take effect.
    #[must_use]
    pub fn modifies(&self) -> &[Modify] {
        &self.modifies
    }

    /// Takes back the change that was added last.
    pub fn pop(&mut self) -> Option<Modify> {
        self.modifies.pop()
    }

    /// Takes out all changes, in their order, and keeps the room for the next ones.
    pub fn drain(&mut self) -> impl Iterator<Item = Modify> {
        self.modifies.drain(..)
    }

    /// Moves all changes of another batch behind those of this one.
    pub fn append(&mut self, other: &mut Self) {
        self.modifies.append(&mut other.modifies);
    }

    /// Removes the changes and keeps the room for the next ones.
    pub fn clear(&mut self) {
        self.modifies.clear();
    }
}

/// A store of sorted keys with atomic batches and snapshots.
pub trait Engine: Send + Sync + 'static {
    /// Applies a batch. It is in the engine's write-ahead log afterwards, which is **not** synced: a power loss may take it,
    /// as a whole, and leave later ones.
    ///
    /// # Errors
    /// The engine's refusal. What was written is then unknown, and the caller must stop writing.
    fn write(&self, batch: &WriteBatch) -> Result<(), EngineError>;

    /// Moves a batch behind another one, which is written later, whole, to the engine that this one is a view of. An engine that
    /// is a view of no other moves it as it is.
    ///
    /// # Errors
    /// The view's refusal of a change that is not its own. Nothing of what was moved may be written then.
    fn place(&self, batch: &mut WriteBatch, behind: &mut WriteBatch) -> Result<(), EngineError> {
        behind.append(batch);
        Ok(())
    }

    /// Makes everything written before durable: none of it is ever missing afterwards.
    ///
    /// # Errors
    /// The engine's refusal. It is never retried: what reached the disk is then unknown.
    fn sync(&self) -> Result<(), EngineError>;

    /// A view of everything written before, which later writes do not change.
    fn snapshot(&self) -> Box<dyn Snapshot>;
}

/// An unchanging view of an engine.
pub trait Snapshot: Send + 'static {
    /// The value of a key.
    ///
    /// # Errors
    /// The engine's refusal.
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError>;

    /// A cursor over the keys in `lower..upper`, which stands nowhere until it is sought. An empty `upper` means
    /// no bound.
    fn cursor<'a>(&'a self, cf: Cf, lower: &[u8], upper: &[u8]) -> Box<dyn Cursor + 'a>;
}

/// A position in a snapshot. A move beyond either bound makes it invalid.
pub trait Cursor {
    /// Moves to the first key at or after `key`.
    ///
    /// # Errors
    /// The engine's refusal.
    fn seek(&mut self, key: &[u8]) -> Result<(), EngineError>;

    /// Moves to the last key at or before `key`.
    ///
    /// # Errors
    /// The engine's refusal.
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<(), EngineError>;

    /// Moves to the first key.
    ///
    /// # Errors
    /// The engine's refusal.
    fn seek_to_first(&mut self) -> Result<(), EngineError>;

    /// Moves to the last key.
    ///
    /// # Errors
    /// The engine's refusal.
    fn seek_to_last(&mut self) -> Result<(), EngineError>;

    /// Moves one key forward. Does nothing where the cursor is invalid.
    ///
    /// # Errors
    /// The engine's refusal.
    fn next(&mut self) -> Result<(), EngineError>;

    /// Moves one key back. Does nothing where the cursor is invalid.
    ///
    /// # Errors
    /// The engine's refusal.
    fn prev(&mut self) -> Result<(), EngineError>;

    /// The key and value where the cursor stands.
    fn entry(&self) -> Option<(&[u8], &[u8])>;
}
