//! The data engine on RocksDB: one column family for each [`Cf`], a write-ahead log that is written but synced only on
//! demand, and owned snapshots. Hands on [`RocksEngine`], a handle that may be cloned.

use std::{fs, path::Path, sync::Arc};

use rocksdb::{
    Cache, ColumnFamily, ColumnFamilyDescriptor, DBRawIteratorWithThreadMode, DBWithThreadMode, Options,
    ReadOptions, SingleThreaded, SnapshotWithThreadMode,
};
use self_cell::self_cell;

pub(crate) mod setup;

use super::{Cf, Cursor, Engine, EngineError, Modify, Snapshot, WriteBatch};
use crate::error::OpenError;
use setup::{check_format, database_options, family_options, open_error};

/// Named by its mode, because the alias `rocksdb::DB` changes its meaning when another crate in the tree asks for
/// RocksDB's feature `multi-threaded-cf`.
pub(crate) type Db = DBWithThreadMode<SingleThreaded>;

/// A handle to the data. The database closes when the last handle and the last snapshot are gone.
#[derive(Clone)]
pub struct RocksEngine {
    db: Arc<Db>,
}

impl RocksEngine {
    /// Opens the database in `dir`, creating it where it does not exist.
    ///
    /// A power loss may take any part of what was written after the last sync. RocksDB stops its replay where a record is
    /// damaged, but not where records are missing without a trace: it takes a page of zeros that begins with a record for room
    /// kept in advance and goes on in the next block, and it does not notice that a file ends before the next one
    /// begins. Each batch is there or not; that one is there says nothing of those before it, unless a sync came between. So the
    /// raft log is applied again from what was synced.
    ///
    /// # Errors
    /// What is wrong with the directory; see [`OpenError`].
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_tuned(dir, |_| ())
    }

    fn open_tuned(dir: &Path, tune: impl FnOnce(&mut Options)) -> Result<Self, OpenError> {
        fs::create_dir_all(dir).map_err(|source| OpenError::Io { path: dir.to_owned(), source })?;
        let cache = Cache::new_lru_cache(setup::BLOCK_CACHE_BYTES).map_err(|error| open_error(dir, error))?;
        let families = Cf::ALL.map(|cf| ColumnFamilyDescriptor::new(cf.name(), family_options(cf, &cache)));
        let mut options = database_options();
        tune(&mut options);
        let db = Db::open_cf_descriptors(&options, dir, families);
        let db = db.map_err(|error| open_error(dir, error))?;
        check_format(&db, dir)?;
        Ok(Self { db: Arc::new(db) })
    }
}

impl Engine for RocksEngine {
    fn write(&self, batch: &WriteBatch) -> Result<(), EngineError> {
        let mut handles: [Option<&ColumnFamily>; Cf::ALL.len()] = [None; Cf::ALL.len()];
        let mut encoded = rocksdb::WriteBatch::default();
        for modify in batch.modifies() {
            let cf = modify.cf();
            // A handle is found by its name; once a batch is often enough.
            let handle = *handles[cf as usize].get_or_insert_with(|| family(&self.db, cf));
            match modify {
                Modify::Put(_, key, value) => encoded.put_cf(handle, key, value),
                Modify::Delete(_, key) => encoded.delete_cf(handle, key),
            }
        }
        self.db.write(encoded).map_err(EngineError::new)
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.db.flush_wal(true).map_err(EngineError::new)
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(RocksSnapshot::new(Arc::clone(&self.db), |db| db.snapshot()))
    }
}

type View<'a> = SnapshotWithThreadMode<'a, Db>;

self_cell!(
    /// A snapshot with the database it is a view of, so that it can travel to another thread.
    struct RocksSnapshot {
        owner: Arc<Db>,
        #[covariant]
        dependent: View,
    }
);

impl Snapshot for RocksSnapshot {
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.borrow_dependent().get_cf(family(self.borrow_owner(), cf), key).map_err(EngineError::new)
    }

    fn cursor<'a>(&'a self, cf: Cf, lower: &[u8], upper: &[u8]) -> Box<dyn Cursor + 'a> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(lower);
        if !upper.is_empty() {
            options.set_iterate_upper_bound(upper);
        }
        let handle = family(self.borrow_owner(), cf);
        Box::new(RocksCursor(self.borrow_dependent().raw_iterator_cf_opt(handle, options)))
    }
}

struct RocksCursor<'a>(DBRawIteratorWithThreadMode<'a, Db>);

impl RocksCursor<'_> {
    /// A cursor that stands nowhere has either come to an end or failed; only the status tells which.
    fn checked(&self) -> Result<(), EngineError> {
        if self.0.valid() { Ok(()) } else { self.0.status().map_err(EngineError::new) }
    }
}

impl Cursor for RocksCursor<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<(), EngineError> {
        self.0.seek(key);
        self.checked()
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<(), EngineError> {
        self.0.seek_for_prev(key);
        self.checked()
    }

    fn seek_to_first(&mut self) -> Result<(), EngineError> {
        self.0.seek_to_first();
        self.checked()
    }

    fn seek_to_last(&mut self) -> Result<(), EngineError> {
        self.0.seek_to_last();
        self.checked()
    }

    fn next(&mut self) -> Result<(), EngineError> {
        // RocksDB forbids a move from nowhere.
        if self.0.valid() {
            self.0.next();
        }
        self.checked()
    }

    fn prev(&mut self) -> Result<(), EngineError> {
        if self.0.valid() {
            self.0.prev();
        }
        self.checked()
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.0.item()
    }
}

fn family(db: &Db, cf: Cf) -> &ColumnFamily {
    db.cf_handle(cf.name()).expect("every column family was opened and none is ever dropped")
}

#[cfg(test)]
pub(crate) mod tests;
