//! Runs commands against a memory engine, one after the other, as the pipeline would. Every transactional command is
//! run twice, to see that its repetition says the same and changes nothing.

use std::mem::discriminant;

use super::{Command, Commit, Get, Mutation, Prewrite, Processed, Request, Response};
use crate::{
    config::Config,
    engine::{Cf, Engine, Modify, WriteBatch, memory::MemoryEngine},
    error::Error,
};

/// One stored entry.
pub(crate) type Entry = (Cf, Vec<u8>, Vec<u8>);

/// A store without a pipeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    pub(crate) engine: MemoryEngine,
}

impl Store {
    /// Validates a command, processes it on a fresh snapshot and applies its changes.
    pub(crate) fn run<R: Request>(&self, request: R) -> Result<R::Output, Error> {
        let response = self.run_command(request.into())?;
        Ok(R::output(response).expect("a command yields its own response"))
    }

    pub(crate) fn run_command(&self, command: Command) -> Result<Response, Error> {
        command.validate(&Config::new("unused")).map_err(Error::InvalidCommand)?;
        let first = self.process(command.clone());
        let Ok(Processed { modifies, response }) = first else {
            return first.map(|processed| processed.response);
        };
        assert!(!command.is_read() || modifies.is_empty(), "{command:?} is a read");
        assert_eq!(command.is_read(), command.latch_hashes().is_empty(), "{command:?}");
        self.apply(modifies);
        if is_idempotent(&command) {
            let state = self.contents();
            let again = self.process(command.clone());
            let again =
                again.unwrap_or_else(|error| panic!("{command:?} was done and is then refused: {error}"));
            assert!(is_same_kind(&again.response, &response), "{command:?}: {response:?}, then {again:?}");
            self.apply(again.modifies);
            assert_eq!(self.contents(), state, "{command:?} changed something when repeated");
        }
        Ok(response)
    }

    pub(crate) fn process(&self, command: Command) -> Result<Processed, Error> {
        command.process(&*self.engine.snapshot())
    }

    pub(crate) fn apply(&self, modifies: Vec<Modify>) {
        let mut batch = WriteBatch::default();
        modifies.into_iter().for_each(|modify| batch.push(modify));
        self.engine.write(&batch).unwrap();
    }

    /// Everything that is stored.
    pub(crate) fn contents(&self) -> Vec<Entry> {
        Cf::ALL.into_iter().flat_map(|cf| self.contents_of(cf)).collect()
    }

    pub(crate) fn contents_of(&self, cf: Cf) -> Vec<Entry> {
        let snapshot = self.engine.snapshot();
        let mut cursor = snapshot.cursor(cf, b"", b"");
        let mut entries = Vec::new();
        cursor.seek_to_first().unwrap();
        while let Some((key, value)) = cursor.entry() {
            entries.push((cf, key.to_vec(), value.to_vec()));
            cursor.next().unwrap();
        }
        entries
    }

    /// Prewrites with the first mutation's key as primary.
    pub(crate) fn prewrite(&self, start_ts: u64, mutations: Vec<Mutation>) -> Result<(), Error> {
        let primary = mutations[0].key().to_vec();
        self.prewrite_for(&primary, start_ts, mutations)
    }

    pub(crate) fn prewrite_for(
        &self,
        primary: &[u8],
        start_ts: u64,
        mutations: Vec<Mutation>,
    ) -> Result<(), Error> {
        self.run(prewrite(primary, start_ts, mutations))
    }

    pub(crate) fn commit(&self, keys: &[&str], start_ts: u64, commit_ts: u64) -> Result<(), Error> {
        self.run(Commit { keys: bytes(keys), start_ts, commit_ts })
    }

    /// Prewrites and commits.
    pub(crate) fn must_write(&self, start_ts: u64, commit_ts: u64, mutations: Vec<Mutation>) {
        let keys = mutations.iter().map(|mutation| mutation.key().to_vec()).collect();
        self.prewrite(start_ts, mutations).unwrap();
        self.run(Commit { keys, start_ts, commit_ts }).unwrap();
    }

    pub(crate) fn get(&self, key: &str, read_ts: u64) -> Result<Option<Vec<u8>>, Error> {
        self.run(Get { key: key.into(), read_ts, bypass_locks: Vec::new() })
    }

    pub(crate) fn must_get(&self, key: &str, read_ts: u64) -> Option<Vec<u8>> {
        self.get(key, read_ts).unwrap()
    }
}

/// Whether the command, once done, may be done again without effect.
fn is_idempotent(command: &Command) -> bool {
    !matches!(
        command,
        Command::RawPut(_)
            | Command::RawDelete(_)
            | Command::RawCompareAndSwap(_)
            | Command::AllocateTimestamps(_)
    )
}

fn is_same_kind(again: &Response, first: &Response) -> bool {
    match (again, first) {
        (Response::TxnStatus(again), Response::TxnStatus(first)) => {
            discriminant(again) == discriminant(first) || again.is_rolled_back() && first.is_rolled_back()
        }
        // What is removed once is not there to be removed again, except where a round was not enough.
        (Response::Gc(again), Response::Gc(first)) => again.safe_point == first.safe_point,
        _ => again == first,
    }
}

pub(crate) fn prewrite(primary: &[u8], start_ts: u64, mutations: Vec<Mutation>) -> Prewrite {
    let txn_size = mutations.len() as u64;
    Prewrite { mutations, primary: primary.to_vec(), start_ts, lock_ttl_ms: 0, txn_size, min_commit_ts: 0 }
}

pub(crate) fn put(key: &str, value: impl AsRef<[u8]>) -> Mutation {
    Mutation::Put { key: key.into(), value: value.as_ref().to_vec() }
}

pub(crate) fn insert(key: &str, value: impl AsRef<[u8]>) -> Mutation {
    Mutation::Insert { key: key.into(), value: value.as_ref().to_vec() }
}

pub(crate) fn delete(key: &str) -> Mutation {
    Mutation::Delete { key: key.into() }
}

pub(crate) fn lock(key: &str) -> Mutation {
    Mutation::Lock { key: key.into() }
}

pub(crate) fn bytes(keys: &[&str]) -> Vec<Vec<u8>> {
    keys.iter().map(|key| key.as_bytes().to_vec()).collect()
}
