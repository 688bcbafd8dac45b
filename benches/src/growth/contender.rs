//! Who is measured: the pipeline, or a bare RocksDB with synced puts and its own group commit.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use storage_pipeline::{CompletionMode, Config, Storage, engine::Cf};

use super::{
    axis::Size,
    load::{key, load, value},
};
use crate::{bare::Bare, closed_loop, round::Failure, rows::scramble};

/// What a client does, to a random one of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sets it, durably.
    Put,
    /// Reads it.
    Get,
}

/// One timed round.
pub struct Round {
    /// What every client does.
    pub operation: Operation,
    /// How many there are.
    pub clients: u64,
    /// The timed length.
    pub length: Duration,
    /// Rounds differ in it, and so in the keys.
    pub seed: u64,
}

/// A store of a size, on disk. It is open only while it is measured, so that none pays for another's background work.
pub struct Contender {
    size: Size,
    dir: PathBuf,
    /// `None` for the bare RocksDB.
    mode: Option<CompletionMode>,
}

impl Contender {
    /// Makes and fills a store in a new directory below `parent`.
    ///
    /// # Errors
    /// The disk's, or the store's.
    pub fn load(
        parent: &Path,
        name: &str,
        size: Size,
        mode: Option<CompletionMode>,
    ) -> Result<Self, Failure> {
        let dir = parent.join(name);
        fs::create_dir(&dir)?;
        let made = Self { size, dir, mode };
        let (data, cf) = if mode.is_some() {
            Storage::open(made.config())?.close();
            (made.dir.join("data"), Some(Cf::Raw))
        } else {
            (made.dir.clone(), None)
        };
        load(&data, parent, size, cf)?;
        Ok(made)
    }

    fn config(&self) -> Config {
        let Size { keys, regions, .. } = self.size;
        let mut config = Config::new(&self.dir);
        config.completion_mode = self.mode.unwrap_or_default();
        config.split_keys = (1..regions).map(|at| key(keys / regions * at).to_vec()).collect();
        config
    }

    /// Operations per second of all clients together.
    ///
    /// # Errors
    /// An operation's, or that a key is missing.
    pub fn rate(&self, round: &Round) -> Result<f64, Failure> {
        if self.mode.is_some() {
            return self.closed_loop(round, &Storage::open(self.config())?);
        }
        self.closed_loop(round, &Bare::open(&self.dir)?)
    }

    fn closed_loop(&self, round: &Round, store: &impl Store) -> Result<f64, Failure> {
        let Round { operation, clients, length, seed } = *round;
        let rate = closed_loop::rate(clients, length, |client| {
            let value = value(self.size.value);
            let mut random = seed << 40 | client << 32;
            move || {
                random += 1;
                let key = key(scramble(random) % self.size.keys);
                match operation {
                    Operation::Put => store.put(key, &value),
                    Operation::Get => store.get(key)?.map(drop).ok_or_else(|| "a key is missing".into()),
                }
            }
        })?;
        Ok(rate.per_second)
    }
}

/// What is done to a store while it is open.
trait Store: Sync {
    fn put(&self, key: [u8; 8], value: &[u8]) -> Result<(), Failure>;
    fn get(&self, key: [u8; 8]) -> Result<Option<Vec<u8>>, Failure>;
}

impl Store for Storage {
    fn put(&self, key: [u8; 8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.raw_put(&key, value).into_result()?)
    }

    fn get(&self, key: [u8; 8]) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.raw_get(&key).into_result()?)
    }
}

impl Store for Bare {
    fn put(&self, key: [u8; 8], value: &[u8]) -> Result<(), Failure> {
        self.put(&key, value)
    }

    fn get(&self, key: [u8; 8]) -> Result<Option<Vec<u8>>, Failure> {
        self.get(&key)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Put => "puts",
            Self::Get => "reads",
        })
    }
}
