//! How the RocksDB instance of the raft logs is set up.

use std::path::Path;

use rocksdb::{BlockBasedOptions, DBRecoveryMode, Options};

use crate::{
    engine::rocks::{
        Db,
        setup::{common_options, open_error},
    },
    error::OpenError,
};

pub(super) fn options(mode: DBRecoveryMode) -> Options {
    let mut options = common_options();
    options.set_wal_recovery_mode(mode);
    // The write-ahead log is as long as the write buffer. Entries that are forgotten before a flush are never written
    // a second time, so a long one saves work; replaying it at the next opening bounds it.
    options.set_write_buffer_size(32 << 20);
    options.set_max_write_buffer_number(3);
    // There is one writer: nobody to share a write with.
    options.set_allow_concurrent_memtable_write(false);
    options.set_enable_write_thread_adaptive_yield(false);
    let mut table = BlockBasedOptions::default();
    // Entries are read once and in order, after a restart or for a follower far behind.
    table.set_block_size(64 << 10);
    table.set_format_version(5);
    options.set_block_based_table_factory(&table);
    options
}

/// Whether somebody else has the database open. RocksDB takes its lock before it looks whether there is a database,
/// so asking for a new one says no more than that, and changes nothing.
pub(super) fn is_locked(dir: &Path) -> bool {
    let mut options = Options::default();
    options.set_error_if_exists(true);
    let refusal = Db::open(&options, dir).map_err(|error| open_error(dir, error));
    matches!(refusal, Err(OpenError::Locked { .. }))
}
