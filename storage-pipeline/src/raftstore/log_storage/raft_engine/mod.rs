//! The raft log in a raft-engine, the log store that TiKV moved to. Hands on [`RaftEngineLog`].
//!
//! Each write is one batch with one checksum, in a file that is written ahead (see `files`); what the engine would
//! tolerate at opening and this log must not is looked for first (see `tail`).

use std::{fs, path::Path, sync::Arc};

use raft::eraftpb::Entry;
use raft_engine::{Command, Config, Engine, LogBatch, ReadableSize, RecoveryMode};

use super::{LogEngine, LogWrite, Recovered, codec, recent::Room};
use crate::{
    engine::{
        EngineError,
        rocks::setup::{FORMAT, known_format},
    },
    error::OpenError,
    region::FIRST_REGION,
};
use files::{AheadFiles, Syncs};
use stored_entry::StoredEntry;

mod files;
mod stored_entry;
mod tail;

/// The engine numbers logs as a store does its regions. What is about all of them is with the first.
const FIRST: u64 = FIRST_REGION;
const FORMAT_KEY: &[u8] = b"f";
const HARD_STATE_KEY: &[u8] = b"h";
const TRUNCATED_KEY: &[u8] = b"t";

/// Bytes of a file of the log, and of all files before forgotten entries are given back to the file system.
const FILE_BYTES: u64 = 32 << 20;
const PURGE_BYTES: u64 = 4 * FILE_BYTES;

/// A raft log on raft-engine.
pub struct RaftEngineLog {
    engine: Engine<AheadFiles>,
    syncs: Arc<Syncs>,
}

impl RaftEngineLog {
    /// Opens the log in `dir`, creating it where it does not exist. What was recovered is durable afterwards.
    ///
    /// Its files are looked through first: the engine cuts the newest one at its first bad record, whatever follows.
    /// A bad record with nothing behind it was never acknowledged and is dropped; one with a good record behind it was.
    ///
    /// # Errors
    /// What is wrong with the directory; see [`OpenError`].
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_sized(dir, FILE_BYTES, PURGE_BYTES)
    }

    fn open_sized(dir: &Path, file_bytes: u64, purge_bytes: u64) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(io)?;
        let mut config = Config {
            dir: dir.to_str().ok_or_else(|| io(std::io::ErrorKind::InvalidFilename.into()))?.to_owned(),
            // Compressing a batch costs more than writing it, at the sizes that one round has.
            batch_compression_threshold: ReadableSize(0),
            target_file_size: ReadableSize(file_bytes),
            purge_threshold: ReadableSize(purge_bytes),
            recovery_threads: 1,
            ..Config::default()
        };
        if let Err(damage) = tail::look_through(dir) {
            // A file that is being written can look damaged. An engine that tolerates nothing takes the lock first, and
            // changes nothing where it then refuses.
            config.recovery_mode = RecoveryMode::AbsoluteConsistency;
            let refusal = Engine::open(config).err().map(|error| open_error(dir, &error));
            return Err(refusal.filter(|error| matches!(error, OpenError::Locked { .. })).unwrap_or(damage));
        }
        config.recovery_mode = RecoveryMode::TolerateTailCorruption;
        let syncs = Arc::new(Syncs::default());
        let files = Arc::new(AheadFiles::new(Arc::clone(&syncs)));
        let engine = Engine::open_with_file_system(config, files).map_err(|error| open_error(dir, &error))?;
        let mut log = Self { engine, syncs };
        if let Some(found) = log.engine.get(FIRST, FORMAT_KEY) {
            known_format(&found, dir)?;
        }
        let corrupt =
            |error: EngineError| OpenError::Corrupt { path: dir.to_owned(), what: error.to_string() };
        for region in log.engine.raft_groups() {
            log.look(region).map_err(corrupt)?;
        }
        log.sync().map_err(|error| OpenError::Engine { path: dir.to_owned(), what: error.to_string() })?;
        // The engine syncs the names of the files that it adds later, and not of the first one.
        fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(io)?;
        Ok(log)
    }

    fn look(&self, region: u64) -> Result<Recovered, EngineError> {
        let get = |key| self.engine.get(region, key);
        let hard_state = get(HARD_STATE_KEY).map(|bytes| codec::take_hard_state(&bytes)).transpose()?;
        let truncated = get(TRUNCATED_KEY).map(|bytes| codec::take_position(&bytes)).transpose()?;
        let truncated = truncated.unwrap_or_default();
        let last_index = self.engine.last_index(region).unwrap_or(0).max(truncated.index);
        Ok(Recovered { hard_state: hard_state.unwrap_or_default(), truncated, last_index })
    }

    fn read(&self, region: u64, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, EngineError> {
        let mut room = Room::new(max_bytes);
        let mut found = Vec::new();
        for index in low..high {
            let stored = self.engine.get_entry::<StoredEntry>(region, index).map_err(EngineError::new)?;
            let missing = || EngineError::new(format!("entry {index} of the raft log is missing"));
            let entry = stored.ok_or_else(missing)?.entry()?;
            if !room.take(&entry) {
                break;
            }
            found.push(entry);
        }
        Ok(found)
    }

    fn write_batch(&self, batch: &mut LogBatch, sync: bool) -> Result<(), EngineError> {
        self.engine.write(batch, sync).map_err(EngineError::new)?;
        self.syncs.check()
    }
}

impl LogEngine for RaftEngineLog {
    fn recover(&mut self, region: u64) -> Result<Recovered, EngineError> {
        self.look(region)
    }

    fn write(&mut self, writes: &[LogWrite<'_>]) -> Result<(), EngineError> {
        let mut batch = LogBatch::with_capacity(3 * writes.len());
        for write in writes {
            add(write, &mut batch).map_err(EngineError::new)?;
        }
        let sync = writes.iter().any(|write| write.sync);
        if batch.is_empty() {
            return if sync { self.sync() } else { Ok(()) };
        }
        self.write_batch(&mut batch, sync)?;
        if writes.iter().any(|write| write.truncated.is_some()) {
            // Here and on no other thread: a read beside it could ask for a file that has just been given back.
            self.engine.purge_expired_files().map_err(EngineError::new)?;
            self.syncs.check()?;
        }
        Ok(())
    }

    /// Reads on a thread of its own: the engine keeps the last block that a thread read under its place, and not under
    /// which engine it was, so that a thread which used two of them could get the bytes of the other.
    fn entries(&self, region: u64, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, EngineError> {
        let read = || self.read(region, low, high, max_bytes);
        std::thread::scope(|scope| {
            let reader =
                std::thread::Builder::new().name("raft-log-reader".to_owned()).spawn_scoped(scope, read);
            let panicked = |_| Err(EngineError::new("reading the raft log panicked"));
            reader.map_err(EngineError::new)?.join().unwrap_or_else(panicked)
        })
    }

    /// The engine's own `sync` does nothing without something to write.
    fn sync(&mut self) -> Result<(), EngineError> {
        let mut batch = LogBatch::with_capacity(1);
        batch.put(FIRST, FORMAT_KEY.to_vec(), FORMAT.to_be_bytes().to_vec()).map_err(EngineError::new)?;
        self.write_batch(&mut batch, true)
    }
}

/// Adds what is to be written of one region.
fn add(write: &LogWrite<'_>, batch: &mut LogBatch) -> raft_engine::Result<()> {
    let LogWrite { region, entries, hard_state, truncated, restart, .. } = *write;
    if restart {
        // It takes the keys too. The hard state is part of every such write; the format is not.
        batch.add_command(region, Command::Clean);
        if region == FIRST {
            batch.put(region, FORMAT_KEY.to_vec(), FORMAT.to_be_bytes().to_vec())?;
        }
    }
    let entries: Vec<_> = entries.iter().map(StoredEntry::new).collect();
    batch.add_entries::<StoredEntry>(region, &entries)?;
    if let Some(hard_state) = hard_state {
        batch.put(region, HARD_STATE_KEY.to_vec(), codec::hard_state(hard_state).to_vec())?;
    }
    if let Some(truncated) = truncated {
        batch.put(region, TRUNCATED_KEY.to_vec(), codec::position(truncated).to_vec())?;
        if !restart {
            batch.add_command(region, Command::Compact { index: truncated.index + 1 });
        }
    }
    Ok(())
}

fn open_error(dir: &Path, error: &raft_engine::Error) -> OpenError {
    let path = dir.to_owned();
    match error {
        // The engine has no type for it.
        raft_engine::Error::Other(what) if what.to_string().contains("Failed to lock") => {
            OpenError::Locked { path }
        }
        raft_engine::Error::Corruption(what) => OpenError::Corrupt { path, what: what.clone() },
        other => OpenError::Engine { path, what: other.to_string() },
    }
}

#[cfg(test)]
mod tests;
