//! Reads single keys as of a timestamp.

use super::{
    KvPair, Processed, Request, Response,
    commit::encode_keys,
    execute::{Execute, size_of, size_of_keys, size_of_timestamps},
    validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
    txn::{Key, MvccReader, meta},
};

/// Reads the value that a key has at a timestamp.
///
/// [`Error::KeyIsLocked`] says that a transaction might still commit at or before it: ask its primary key with
/// [`CheckTxnStatus`](super::CheckTxnStatus), then resolve the lock or read past it. [`Error::GcTooEarly`] says that
/// the timestamp is below the safe point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    /// The key.
    pub key: Vec<u8>,
    /// Versions committed at or before this are visible.
    pub read_ts: u64,
    /// Start timestamps of transactions whose locks to read past, because they can only commit above `read_ts`.
    pub bypass_locks: Vec<u64>,
}

impl Request for Get {
    type Output = Option<Vec<u8>>;

    fn output(response: Response) -> Option<Self::Output> {
        match response {
            Response::Value(value) => Some(value),
            _ => None,
        }
    }
}

impl Execute for Get {
    const IS_READ: bool = true;

    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::key("key", &self.key, config)?;
        validate::timestamp("read_ts", self.read_ts)
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        each(&self.key);
    }

    fn size_bytes(&self) -> usize {
        size_of([self.key.as_slice()]).saturating_add(size_of_timestamps(&self.bypass_locks))
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        meta::check_safe_point(snapshot, self.read_ts)?;
        let key = Key::from_raw(&self.key);
        let mut reader = MvccReader::for_key(snapshot, &key);
        let value = read(&mut reader, &key, self.read_ts, &self.bypass_locks)?;
        Ok(Processed::unchanged(Response::Value(value)))
    }
}

/// Reads the values that several keys have at a timestamp, all in one snapshot. Keys without a value are left out.
///
/// Its errors are those of [`Get`]; one locked key fails all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchGet {
    /// The keys.
    pub keys: Vec<Vec<u8>>,
    /// Versions committed at or before this are visible.
    pub read_ts: u64,
    /// Start timestamps of transactions whose locks to read past, because they can only commit above `read_ts`.
    pub bypass_locks: Vec<u64>,
}

impl Request for BatchGet {
    type Output = Vec<KvPair>;

    fn output(response: Response) -> Option<Self::Output> {
        match response {
            Response::Pairs(pairs) => Some(pairs),
            _ => None,
        }
    }
}

impl Execute for BatchGet {
    const IS_READ: bool = true;

    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::keys("keys", &self.keys, config)?;
        validate::timestamp("read_ts", self.read_ts)
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        self.keys.iter().for_each(|key| each(key));
    }

    fn size_bytes(&self) -> usize {
        size_of_keys(&self.keys).saturating_add(size_of_timestamps(&self.bypass_locks))
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        meta::check_safe_point(snapshot, self.read_ts)?;
        let encoded = encode_keys(&self.keys);
        let mut reader = MvccReader::for_keys(snapshot, &encoded);
        let mut pairs = Vec::new();
        for (key, encoded) in self.keys.into_iter().zip(&encoded) {
            if let Some(value) = read(&mut reader, encoded, self.read_ts, &self.bypass_locks)? {
                pairs.push(KvPair { key, value });
            }
        }
        Ok(Processed::unchanged(Response::Pairs(pairs)))
    }
}

fn read(
    reader: &mut MvccReader<'_>,
    key: &Key,
    read_ts: u64,
    bypass_locks: &[u64],
) -> Result<Option<Vec<u8>>, Error> {
    match reader.load_lock(key)? {
        Some(lock) if lock.blocks_read(read_ts, bypass_locks) => Err(lock.blocks(key)),
        _ => reader.get(key, read_ts),
    }
}
