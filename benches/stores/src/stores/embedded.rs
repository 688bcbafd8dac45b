//! Other embedded stores.

use std::path::Path;

use benches::{bare::Bare, round::Failure};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use raft_engine::{Config, Engine, LogBatch};
use redb::TableDefinition;

use super::Store;

impl Store for Bare {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.put(key, value)
    }
}

/// Keeps what it is given as the state of one region: the cheapest write that it knows.
pub(super) struct RaftEngine(Engine);

impl RaftEngine {
    pub(super) fn open(dir: &Path) -> Result<Self, Failure> {
        let dir = dir.to_str().ok_or("the directory's name is not UTF-8")?.to_owned();
        Ok(Self(Engine::open(Config { dir, ..Config::default() })?))
    }
}

impl Store for RaftEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let mut batch = LogBatch::default();
        batch.put(1, key.to_vec(), value.to_vec())?;
        self.0.write(&mut batch, true)?;
        Ok(())
    }
}

pub(super) struct Fjall {
    database: Database,
    keys: Keyspace,
}

impl Fjall {
    pub(super) fn open(dir: &Path) -> Result<Self, Failure> {
        let database = Database::builder(dir).open()?;
        let keys = database.keyspace("keys", KeyspaceCreateOptions::default)?;
        Ok(Self { database, keys })
    }
}

impl Store for Fjall {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.keys.insert(key, value)?;
        Ok(self.database.persist(PersistMode::SyncData)?)
    }
}

/// Each put is a transaction, which is durable when it is committed.
pub(super) struct Redb(redb::Database);

const KEYS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");

impl Redb {
    pub(super) fn open(file: &Path) -> Result<Self, Failure> {
        Ok(Self(redb::Database::create(file)?))
    }
}

impl Store for Redb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        transaction.open_table(KEYS)?.insert(key, value)?;
        Ok(transaction.commit()?)
    }
}
