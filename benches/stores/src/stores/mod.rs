//! The stores, each as its users would set it up for puts that are on disk when they return.

mod embedded;
mod limit;

use std::{fmt, fs, path::Path};

use benches::{bare::Bare, round::Failure};
use storage_pipeline::{CompletionMode, Config, RaftLog, Storage};

use self::{
    embedded::{Fjall, RaftEngine, Redb},
    limit::Wal,
};

/// Takes puts from many threads at once.
pub(crate) trait Store: Sync {
    /// Returns when the put is on disk.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure>;
}

/// Which store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The limit: a log that writes over itself, with group commit, and nothing else.
    Wal,
    /// RocksDB, with its own group commit.
    Rocks,
    /// The log that TiKV keeps its raft entries in, alone.
    RaftEngine,
    /// The whole pipeline of one replica, raft included.
    Pipeline(CompletionMode, RaftLog),
    Fjall,
    Redb,
}

/// All of them.
pub(crate) const ALL: [Kind; 8] = [
    Kind::Wal,
    Kind::Rocks,
    Kind::RaftEngine,
    Kind::Pipeline(CompletionMode::ApplyNotify, RaftLog::RocksDb),
    Kind::Pipeline(CompletionMode::ApplyAll, RaftLog::RocksDb),
    Kind::Pipeline(CompletionMode::ApplyNotify, RaftLog::RaftEngine),
    Kind::Fjall,
    Kind::Redb,
];

/// Opens a store, or makes it where it is not there yet.
pub(crate) fn open(kind: Kind, dir: &Path) -> Result<Box<dyn Store>, Failure> {
    fs::create_dir_all(dir)?;
    Ok(match kind {
        Kind::Wal => Box::new(Wal::open(&dir.join("log"))?),
        Kind::Rocks => Box::new(Bare::open(dir)?),
        Kind::RaftEngine => Box::new(RaftEngine::open(dir)?),
        Kind::Pipeline(mode, log) => {
            let mut config = Config::new(dir);
            (config.completion_mode, config.raft_log) = (mode, log);
            Box::new(Storage::open(config)?)
        }
        Kind::Fjall => Box::new(Fjall::open(dir)?),
        Kind::Redb => Box::new(Redb::open(&dir.join("file"))?),
    })
}

impl Store for Storage {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.raw_put(key, value).into_result()?)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wal => f.write_str("a log of its own with group commit (the limit)"),
            Self::Rocks => f.write_str("bare RocksDB"),
            Self::RaftEngine => f.write_str("bare raft-engine"),
            Self::Pipeline(mode, log) => write!(f, "the pipeline, `{mode}`, raft log in {log}"),
            Self::Fjall => f.write_str("fjall"),
            Self::Redb => f.write_str("redb"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_takes_puts_from_several_threads_and_opens_again() {
        for kind in ALL {
            let dir = tempfile::tempdir().unwrap();
            for _ in 0..2 {
                let store = open(kind, dir.path()).unwrap();
                std::thread::scope(|scope| {
                    for thread in 0..4u8 {
                        let store = &store;
                        scope.spawn(move || {
                            (0..8u8).for_each(|at| store.put(&[thread, at], &[7; 150]).unwrap())
                        });
                    }
                });
            }
        }
    }
}
