//! What a transaction does to one key. Hands `prewrite` the lock that it takes.

use crate::txn::LockType;

/// What a transaction does to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Sets a value.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Sets a value, if the key has none.
    Insert {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Removes the value.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// Changes nothing, and lets nobody else change the key before the commit.
    Lock {
        /// The key.
        key: Vec<u8>,
    },
    /// Checks that the key has no value, and neither changes nor locks it. It cannot be the primary key.
    CheckNotExists {
        /// The key.
        key: Vec<u8>,
    },
}

impl Mutation {
    /// The key, as the user gave it.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Put { key, .. }
            | Self::Insert { key, .. }
            | Self::Delete { key }
            | Self::Lock { key }
            | Self::CheckNotExists { key } => key,
        }
    }

    /// The value, where it sets one.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Put { value, .. } | Self::Insert { value, .. } => Some(value),
            Self::Delete { .. } | Self::Lock { .. } | Self::CheckNotExists { .. } => None,
        }
    }

    pub(super) fn must_not_exist(&self) -> bool {
        matches!(self, Self::Insert { .. } | Self::CheckNotExists { .. })
    }

    /// The lock to set and the value to store; no lock where it only checks.
    pub(super) fn into_lock(self) -> Option<(LockType, Option<Vec<u8>>)> {
        match self {
            Self::Put { value, .. } | Self::Insert { value, .. } => Some((LockType::Put, Some(value))),
            Self::Delete { .. } => Some((LockType::Delete, None)),
            Self::Lock { .. } => Some((LockType::Lock, None)),
            Self::CheckNotExists { .. } => None,
        }
    }
}
