//! How both RocksDB instances are set up, and what their refusals to open mean.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, ErrorKind, LogLevel, Options, WriteOptions,
};

use super::{Db, family};
use crate::{engine::Cf, error::OpenError};

/// The layout of keys and values that this version reads and writes. In the one before, the keys of raft logs named no
/// regions.
pub(crate) const FORMAT: u32 = 2;

/// Where the format version is kept, in [`Cf::Meta`].
pub(super) const FORMAT_KEY: &[u8] = b"format";

/// Bytes of blocks that are kept in memory, for all column families together.
pub(super) const BLOCK_CACHE_BYTES: usize = 64 << 20;

/// Options that both instances, data and log, have in common.
pub(crate) fn common_options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    // RocksDB's own log file gets its head at the opening and nothing after it: a build with assertions, as distributions
    // ship it, ends the process when that file cannot grow, which a full disk does not deserve. What goes wrong is
    // returned as well.
    options.set_log_level(LogLevel::Fatal);
    options.set_keep_log_file_num(4);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    // Both let a write become visible before those in front of it are, for more writers than there are here.
    options.set_enable_pipelined_write(false);
    options.set_unordered_write(false);
    options.set_max_background_jobs(2);
    // Which compressors are there depends on how RocksDB was built; uncompressed files are readable everywhere.
    options.set_compression_type(DBCompressionType::None);
    options
}

pub(super) fn database_options() -> Options {
    let mut options = common_options();
    options.create_missing_column_families(true);
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    // A column family that is seldom written would otherwise keep old write-ahead logs from being deleted.
    options.set_max_total_wal_size(128 << 20);
    // Flushes and compactions hand their pages to the disk as they go: a burst of them would delay the raft log's sync.
    options.set_bytes_per_sync(1 << 20);
    options
}

pub(super) fn family_options(cf: Cf, cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_block_size(16 << 10);
    table.set_format_version(5);
    // Percolator asks for many keys that do not exist: a lock before each read, a write record before each insert.
    table.set_bloom_filter(10.0, false);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    let mut options = Options::default();
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::None);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_write_buffer_size(match cf {
        Cf::Default | Cf::Write | Cf::Raw => 32 << 20,
        Cf::Lock => 16 << 20,
        Cf::Meta => 4 << 20,
    });
    options
}

pub(super) fn check_format(db: &Db, dir: &Path) -> Result<(), OpenError> {
    let failed = |error| open_error(dir, error);
    let meta = family(db, Cf::Meta);
    if let Some(found) = db.get_cf(meta, FORMAT_KEY).map_err(failed)? {
        return known_format(&found, dir);
    }
    for cf in Cf::ALL {
        let mut cursor = db.raw_iterator_cf(family(db, cf));
        cursor.seek_to_first();
        cursor.status().map_err(failed)?;
        if cursor.valid() {
            let what = format!("column family {} holds keys but the format version is missing", cf.name());
            return Err(OpenError::Corrupt { path: dir.to_owned(), what });
        }
    }
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    db.put_cf_opt(meta, FORMAT_KEY, FORMAT.to_be_bytes(), &synced).map_err(failed)
}

/// Whether this version reads the format that was found.
pub(crate) fn known_format(found: &[u8], dir: &Path) -> Result<(), OpenError> {
    let path = dir.to_owned();
    let Ok(found) = <[u8; 4]>::try_from(found).map(u32::from_be_bytes) else {
        return Err(OpenError::Corrupt { path, what: format!("format version of {} bytes", found.len()) });
    };
    match found {
        FORMAT => Ok(()),
        0 => Err(OpenError::Corrupt { path, what: "format version 0".to_owned() }),
        older if older < FORMAT => Err(OpenError::OlderFormat { path, found, supported: FORMAT }),
        _ => Err(OpenError::NewerFormat { path, found, supported: FORMAT }),
    }
}

/// What RocksDB's refusal to open `dir` means.
pub(crate) fn open_error(dir: &Path, error: rocksdb::Error) -> OpenError {
    let (path, what) = (dir.to_owned(), error.to_string());
    match error.kind() {
        ErrorKind::Corruption => OpenError::Corrupt { path, what },
        // RocksDB has no kind of its own for this. The first is said for a lock of this process, the second for others'.
        ErrorKind::IOError
            if what.contains("lock hold by current process") || what.contains("While lock file") =>
        {
            OpenError::Locked { path }
        }
        _ => OpenError::Engine { path, what },
    }
}
