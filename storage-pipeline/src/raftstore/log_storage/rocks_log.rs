//! The raft logs in a RocksDB instance of their own, tuned for one small synced write after the other.

use std::{collections::BTreeMap, fs, path::Path};

use raft::eraftpb::Entry;
use rocksdb::{DBRecoveryMode, Options, ReadOptions, WriteBatch, WriteOptions};

use super::{
    LogEngine, LogWrite, Position, Recovered, codec,
    recent::Room,
    rocks_options::{is_locked, options},
    wal::{self, Tail},
    wal_room::WalRoom,
};
use crate::{
    engine::{
        EngineError,
        rocks::{
            Db,
            setup::{FORMAT, known_format, open_error},
        },
    },
    error::OpenError,
};

/// Keys of entries begin with 1, the region and the index, so that nothing else lies between those of one region. All other
/// keys begin with 0.
const ENTRY: u8 = 1;
const FORMAT_KEY: [u8; 2] = *b"\0f";
const HARD_STATE: u8 = b'h';
const TRUNCATED: u8 = b't';

/// A raft log on RocksDB.
pub struct RocksLog {
    db: Db,
    synced: WriteOptions,
    unsynced: WriteOptions,
    room: WalRoom,
    /// Encodes one entry after the other.
    buffer: Vec<u8>,
    ends: BTreeMap<u64, Ends>,
}

/// Where the entries of a region begin and end, as far as they were written.
#[derive(Clone, Copy, Default)]
struct Ends {
    truncated: Position,
    last_index: u64,
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
            ends: BTreeMap::new(),
        })
    }
}

impl RocksLog {
    /// Adds what is to be written of one region. Returns where its entries begin and end afterwards.
    fn add(&mut self, write: &LogWrite<'_>, batch: &mut WriteBatch) -> Ends {
        let region = write.region;
        let before = self.ends.get(&region).copied().unwrap_or_default();
        let mut last_index = before.last_index;
        if let Some(truncated) = write.truncated.filter(|_| write.restart) {
            batch.delete_range(entry_key(region, 0), entry_key(region, u64::MAX));
            last_index = truncated.index;
        }
        for entry in write.entries {
            self.buffer.clear();
            codec::put_entry(&mut self.buffer, entry);
            batch.put(entry_key(region, entry.index), &self.buffer);
            last_index = entry.index;
        }
        if last_index < before.last_index {
            batch.delete_range(entry_key(region, last_index + 1), entry_key(region, before.last_index + 1));
        }
        if let Some(hard_state) = write.hard_state {
            batch.put(state_key(region, HARD_STATE), codec::hard_state(hard_state));
        }
        if let Some(truncated) = write.truncated {
            let from = entry_key(region, before.truncated.index + 1);
            batch.delete_range(from, entry_key(region, truncated.index + 1));
            batch.put(state_key(region, TRUNCATED), codec::position(truncated));
        }
        Ends { truncated: write.truncated.unwrap_or(before.truncated), last_index }
    }
}

impl LogEngine for RocksLog {
    fn recover(&mut self, region: u64) -> Result<Recovered, EngineError> {
        let recovered = recover(&self.db, region)?;
        let Recovered { truncated, last_index, .. } = recovered;
        self.ends.insert(region, Ends { truncated, last_index });
        Ok(recovered)
    }

    fn write(&mut self, writes: &[LogWrite<'_>]) -> Result<(), EngineError> {
        let mut batch = WriteBatch::default();
        for write in writes {
            // Whoever fails to write asks for no further one, so that nobody sees what is noted too early.
            let ends = self.add(write, &mut batch);
            self.ends.insert(write.region, ends);
        }
        self.room.reserve(batch.size_in_bytes() as u64);
        let sync = writes.iter().any(|write| write.sync);
        let options = if sync { &self.synced } else { &self.unsynced };
        self.db.write_opt(batch, options).map_err(EngineError::new)
    }

    fn entries(&self, region: u64, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, EngineError> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(entry_key(region, high));
        let mut cursor = self.db.raw_iterator_opt(options);
        cursor.seek(entry_key(region, low));
        let mut room = Room::new(max_bytes);
        let mut found = Vec::new();
        for index in low..high {
            let Some((key, value)) = cursor.item().filter(|(key, _)| *key == entry_key(region, index)) else {
                cursor.status().map_err(EngineError::new)?;
                return Err(EngineError::new(format!("entry {index} of the raft log is missing")));
            };
            debug_assert_eq!(key.len(), 17);
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

fn entry_key(region: u64, index: u64) -> [u8; 17] {
    let mut key = [ENTRY; 17];
    key[1..9].copy_from_slice(&region.to_be_bytes());
    key[9..].copy_from_slice(&index.to_be_bytes());
    key
}

fn state_key(region: u64, what: u8) -> [u8; 10] {
    let mut key = [0; 10];
    key[1] = what;
    key[2..].copy_from_slice(&region.to_be_bytes());
    key
}

fn recover(db: &Db, region: u64) -> Result<Recovered, EngineError> {
    let get = |what| db.get(state_key(region, what)).map_err(EngineError::new);
    let hard_state = get(HARD_STATE)?.map(|bytes| codec::take_hard_state(&bytes)).transpose()?;
    let truncated = get(TRUNCATED)?.map(|bytes| codec::take_position(&bytes)).transpose()?;
    let truncated = truncated.unwrap_or_default();
    let mut options = ReadOptions::default();
    options.set_iterate_range(entry_key(region, 0)..entry_key(region, u64::MAX));
    let mut cursor = db.raw_iterator_opt(options);
    cursor.seek_to_last();
    cursor.status().map_err(EngineError::new)?;
    let last_index = match cursor.key() {
        None => truncated.index,
        Some([ENTRY, place @ ..]) if place.len() == 16 => {
            place[8..].iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
        }
        Some(key) => {
            return Err(EngineError::new(format!("unknown key \"{}\" in the raft log", key.escape_ascii())));
        }
    };
    Ok(Recovered { hard_state: hard_state.unwrap_or_default(), truncated, last_index })
}
