//! A bare RocksDB as its users have it by default, with synced puts and its own group commit: what the pipeline is compared
//! with.

use std::path::Path;

use rocksdb::{DB, Options, WriteOptions};

use crate::round::Failure;

/// An open RocksDB.
pub struct Bare {
    db: DB,
    synced: WriteOptions,
}

impl Bare {
    /// Opens it, or makes it where there is none.
    ///
    /// # Errors
    /// RocksDB's.
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let mut options = Options::default();
        options.create_if_missing(true);
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        Ok(Self { db: DB::open(&options, dir)?, synced })
    }

    /// Returns when the put is on disk.
    ///
    /// # Errors
    /// RocksDB's.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.db.put_opt(key, value, &self.synced)?)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// RocksDB's.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.db.get(key)?)
    }
}
