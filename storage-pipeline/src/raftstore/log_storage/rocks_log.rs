//! The raft log in a RocksDB instance of its own, tuned for one small synced write after the other.

use std::{fs, path::Path};

use raft::eraftpb::Entry;
use rocksdb::{BlockBasedOptions, DBRecoveryMode, Options, ReadOptions, WriteBatch, WriteOptions};

use super::{
    LogEngine, LogWrite, Position, Recovered, codec,
    recent::Room,
    wal::{self, Tail},
    wal_room::WalRoom,
};
use crate::{
    engine::{
        EngineError,
        rocks::{
            Db,
            setup::{FORMAT, common_options, known_format, open_error},
        },
    },
    error::OpenError,
};

/// Keys of entries begin with 1, so that nothing else lies between or after them. All other keys begin with 0.
const ENTRY: u8 = 1;
const ENTRIES: std::ops::Range<[u8; 1]> = [ENTRY]..[ENTRY + 1];
const FORMAT_KEY: [u8; 2] = *b"\0f";
const HARD_STATE_KEY: [u8; 2] = *b"\0h";
const TRUNCATED_KEY: [u8; 2] = *b"\0t";

/// A raft log on RocksDB.
pub struct RocksLog {
    db: Db,
    recovered: Recovered,
    synced: WriteOptions,
    unsynced: WriteOptions,
    room: WalRoom,
    /// Encodes one entry after the other.
    buffer: Vec<u8>,
    /// Entries end here, and begin after `truncated`, as far as they were written.
    last_index: u64,
    truncated: Position,
}

impl RocksLog {
    /// Opens the log in `dir`, creating it where it does not exist. What was recovered is durable afterwards.
    ///
    /// Its write-ahead log is looked through first, because RocksDB either cuts at the first bad record or refuses a
    /// torn one, and can tell neither from the other. A bad record with nothing behind it was never acknowledged,
    /// because every acknowledged one was synced; it is dropped. One with a good record behind it was.
    ///
    /// # Errors
    /// What is wrong with the directory; see [`OpenError`].
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_tuned(dir, |_| ())
    }

    pub(super) fn open_tuned(dir: &Path, tune: impl FnOnce(&mut Options)) -> Result<Self, OpenError> {
        fs::create_dir_all(dir).map_err(|source| OpenError::Io { path: dir.to_owned(), source })?;
        let mode = match wal::look_through(dir) {
            Ok(Tail::Clean) => DBRecoveryMode::TolerateCorruptedTailRecords,
            Ok(Tail::Torn { file, at }) => {
                tracing::warn!("{}: dropping a torn write at byte {at}", file.display());
                DBRecoveryMode::PointInTime
            }
            // A file that is being written can look damaged.
            Err(_) if is_locked(dir) => return Err(OpenError::Locked { path: dir.to_owned() }),
            Err(error) => return Err(error),
        };
        let failed = |error| open_error(dir, error);
        let mut options = options(mode);
        tune(&mut options);
        let db = Db::open(&options, dir).map_err(failed)?;
        if let Some(found) = db.get(FORMAT_KEY).map_err(failed)? {
            known_format(&found, dir)?;
        }
        let corrupt =
            |error: EngineError| OpenError::Corrupt { path: dir.to_owned(), what: error.to_string() };
        let recovered = recover(&db).map_err(corrupt)?;
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        // What was replayed may never have reached the disk. It goes into a synced table file, and the synced write
        // behind it proves that the new write-ahead log and its name are durable too.
        db.flush().map_err(failed)?;
        db.put_opt(FORMAT_KEY, FORMAT.to_be_bytes(), &synced).map_err(failed)?;
        Ok(Self {
            db,
            synced,
            unsynced: WriteOptions::default(),
            room: WalRoom::new(dir),
            buffer: Vec::new(),
            last_index: recovered.last_index,
            truncated: recovered.truncated,
            recovered,
        })
    }
}

impl LogEngine for RocksLog {
    fn recover(&mut self) -> Result<Recovered, EngineError> {
        Ok(self.recovered.clone())
    }

    fn write(&mut self, write: &LogWrite<'_>) -> Result<(), EngineError> {
        let mut batch = WriteBatch::default();
        let mut last_index = self.last_index;
        if let Some(truncated) = write.truncated.filter(|_| write.restart) {
            batch.delete_range(ENTRIES.start, ENTRIES.end);
            last_index = truncated.index;
        }
        for entry in write.entries {
            self.buffer.clear();
            codec::put_entry(&mut self.buffer, entry);
            batch.put(entry_key(entry.index), &self.buffer);
            last_index = entry.index;
        }
        if last_index < self.last_index {
            batch.delete_range(entry_key(last_index + 1), entry_key(self.last_index + 1));
        }
        if let Some(hard_state) = write.hard_state {
            batch.put(HARD_STATE_KEY, codec::hard_state(hard_state));
        }
        if let Some(truncated) = write.truncated {
            batch.delete_range(entry_key(self.truncated.index + 1), entry_key(truncated.index + 1));
            batch.put(TRUNCATED_KEY, codec::position(truncated));
        }
        self.room.reserve(batch.size_in_bytes() as u64);
        let options = if write.sync { &self.synced } else { &self.unsynced };
        self.db.write_opt(batch, options).map_err(EngineError::new)?;
        self.last_index = last_index;
        self.truncated = write.truncated.unwrap_or(self.truncated);
        Ok(())
    }

    fn entries(&self, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, EngineError> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(entry_key(high));
        let mut cursor = self.db.raw_iterator_opt(options);
        cursor.seek(entry_key(low));
        let mut room = Room::new(max_bytes);
        let mut found = Vec::new();
        for index in low..high {
            let Some((key, value)) = cursor.item().filter(|(key, _)| *key == entry_key(index)) else {
                cursor.status().map_err(EngineError::new)?;
                return Err(EngineError::new(format!("entry {index} of the raft log is missing")));
            };
            debug_assert_eq!(key.len(), 9);
            let entry = codec::take_entry(index, value)?;
            if !room.take(&entry) {
                break;
            }
            found.push(entry);
            cursor.next();
        }
        Ok(found)
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        self.db.flush_wal(true).map_err(EngineError::new)
    }
}

fn entry_key(index: u64) -> [u8; 9] {
    let mut key = [ENTRY; 9];
    key[1..].copy_from_slice(&index.to_be_bytes());
    key
}

fn options(mode: DBRecoveryMode) -> Options {
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
fn is_locked(dir: &Path) -> bool {
    let mut options = Options::default();
    options.set_error_if_exists(true);
    let refusal = Db::open(&options, dir).map_err(|error| open_error(dir, error));
    matches!(refusal, Err(OpenError::Locked { .. }))
}

fn recover(db: &Db) -> Result<Recovered, EngineError> {
    let get = |key| db.get(key).map_err(EngineError::new);
    let hard_state = get(HARD_STATE_KEY)?.map(|bytes| codec::take_hard_state(&bytes)).transpose()?;
    let truncated = get(TRUNCATED_KEY)?.map(|bytes| codec::take_position(&bytes)).transpose()?;
    let truncated = truncated.unwrap_or_default();
    let mut options = ReadOptions::default();
    options.set_iterate_range(ENTRIES.start..ENTRIES.end);
    let mut cursor = db.raw_iterator_opt(options);
    cursor.seek_to_last();
    cursor.status().map_err(EngineError::new)?;
    let last_index = match cursor.key() {
        None => truncated.index,
        Some([ENTRY, index @ ..]) if index.len() == 8 => {
            index.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
        }
        Some(key) => {
            return Err(EngineError::new(format!("unknown key \"{}\" in the raft log", key.escape_ascii())));
        }
    };
    Ok(Recovered { hard_state: hard_state.unwrap_or_default(), truncated, last_index })
}
