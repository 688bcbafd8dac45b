//! A client's transaction: reads at one timestamp, writes kept here until commit, two-phase commit by the store's
//! commands. Locks of others are resolved as Percolator does: by asking their primary key.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    client::{TransactionError, executor::Executor, past_locks::Purpose},
    command::{Commit, Get, KvPair, Mutation, Prewrite, Rollback, Scan},
    error::{CommandError, Error, Outcome},
};

/// How long a transaction's locks live from its start, in milliseconds, if its client vanishes.
const LOCK_TTL_MS: u64 = 3_000;

/// A transaction with snapshot isolation, on a store in this process or on a cluster: the same steps, which wait by
/// blocking there and by `await` here. Dropping it undoes nothing, since nothing was written before `commit`.
///
/// ```
/// # #[cfg(feature = "store")]
/// # {
/// use storage_pipeline::{Config, Storage};
/// let dir = tempfile::tempdir()?;
/// let storage = Storage::open(Config::new(dir.path()))?;
/// let mut transfer = storage.begin().into_result()?;
/// transfer.put(b"alice", b"7");
/// transfer.put(b"bob", b"3");
/// assert_eq!(transfer.get(b"alice")?.as_deref(), Some(&b"7"[..]), "it sees its own writes");
/// transfer.commit()?;
/// assert_eq!(storage.begin().into_result()?.get(b"bob")?.as_deref(), Some(&b"3"[..]));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Transaction<S> {
    pub(super) store: S,
    pub(super) start_ts: u64,
    pub(super) timeout: Duration,
    writes: BTreeMap<Vec<u8>, Mutation>,
}

impl<S> Transaction<S> {
    /// The timestamp at which it reads.
    #[must_use]
    pub fn start_ts(&self) -> u64 {
        self.start_ts
    }

    /// Sets a key at commit.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.write(Mutation::Put { key: key.to_vec(), value: value.to_vec() });
    }

    /// Sets a key at commit, which fails with [`Error::AlreadyExist`] where the key exists.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) {
        self.write(Mutation::Insert { key: key.to_vec(), value: value.to_vec() });
    }

    /// Removes a key at commit.
    pub fn delete(&mut self, key: &[u8]) {
        self.write(Mutation::Delete { key: key.to_vec() });
    }

    fn write(&mut self, mutation: Mutation) {
        self.writes.insert(mutation.key().to_vec(), mutation);
    }
}

impl<S: Executor> Transaction<S> {
    pub(crate) fn new(store: S, start_ts: u64) -> Self {
        let timeout = store.timeout();
        Self { store, start_ts, timeout, writes: BTreeMap::new() }
    }

    /// `get`, in either form.
    pub(super) async fn read(&self, key: &[u8]) -> Result<Option<Vec<u8>>, CommandError> {
        match self.writes.get(key) {
            Some(Mutation::Put { value, .. } | Mutation::Insert { value, .. }) => Ok(Some(value.clone())),
            Some(Mutation::Delete { .. }) => Ok(None),
            _ => {
                let get = |bypass_locks| Get { key: key.to_vec(), read_ts: self.start_ts, bypass_locks };
                self.past_locks(Purpose::Read, get).await
            }
        }
    }

    /// `scan`, in either form.
    pub(super) async fn read_range(
        &self,
        start: &[u8],
        end: &[u8],
        limit: usize,
    ) -> Result<Vec<KvPair>, CommandError> {
        let (mut found, mut start) = (Vec::new(), start);
        loop {
            // To the end of the range, or of the region where that comes first.
            let region = self.store.regions().of_key(start);
            let is_last = region.end_key.is_empty() || !end.is_empty() && end <= region.end_key.as_slice();
            let end_here = if is_last { end } else { &region.end_key };
            let limit_here = limit - found.len();
            let scan = |bypass_locks| Scan {
                start_key: start.to_vec(),
                end_key: end_here.to_vec(),
                limit: limit_here,
                read_ts: self.start_ts,
                reverse: false,
                key_only: false,
                bypass_locks,
            };
            found.extend(self.past_locks(Purpose::Read, scan).await?);
            if is_last || found.len() >= limit {
                return Ok(found);
            }
            start = &region.end_key;
        }
    }

    /// `commit`, in either form.
    pub(super) async fn write_all(self) -> Result<u64, TransactionError> {
        let Some(primary) = self.writes.keys().next().cloned() else { return Ok(self.start_ts) };
        if let Err(error) = self.prewrite(&primary).await {
            return Err(self.roll_back(error).await);
        }
        loop {
            let commit_ts = match self.store.timestamp().await.into_result() {
                Ok(commit_ts) => commit_ts,
                Err(error) => return Err(self.roll_back(error).await),
            };
            let mut regions = self.by_region().into_iter();
            let keys = keys_of(regions.next().unwrap_or_default());
            match self.store.execute(Commit { keys, start_ts: self.start_ts, commit_ts }).await {
                Outcome::Applied(()) => {
                    // The primary key has decided. Where the others do not hear of it, their next readers ask it.
                    for writes in regions {
                        let keys = keys_of(writes);
                        let _ = self.store.execute(Commit { keys, start_ts: self.start_ts, commit_ts }).await;
                    }
                    return Ok(commit_ts);
                }
                // A reader was promised meanwhile that nothing commits below its timestamp. A later one will do.
                Outcome::NotExecuted(Error::CommitTsExpired { .. }) => {}
                Outcome::NotExecuted(error) => {
                    return Err(self.roll_back(CommandError::NotExecuted(error)).await);
                }
                Outcome::Indeterminate(cause) => return Err(TransactionError::Undetermined(cause)),
            }
        }
    }

    async fn prewrite(&self, primary: &[u8]) -> Result<(), CommandError> {
        for mutations in self.by_region() {
            let prewrite = |_| Prewrite {
                txn_size: self.writes.len() as u64,
                mutations: mutations.clone(),
                primary: primary.to_vec(),
                start_ts: self.start_ts,
                lock_ttl_ms: LOCK_TTL_MS,
                min_commit_ts: 0,
            };
            self.past_locks(Purpose::Write, prewrite).await?;
        }
        Ok(())
    }

    /// The writes of each region, for each of which a command is needed. The primary key is the first of the first.
    fn by_region(&self) -> Vec<Vec<Mutation>> {
        let mut regions: Vec<(u64, Vec<Mutation>)> = Vec::new();
        for (key, mutation) in &self.writes {
            let region = self.store.regions().of_key(key).id;
            match regions.last_mut() {
                Some((last, writes)) if *last == region => writes.push(mutation.clone()),
                _ => regions.push((region, vec![mutation.clone()])),
            }
        }
        regions.into_iter().map(|(_, writes)| writes).collect()
    }

    /// No commit was or will be proposed, so nothing of it is ever seen, whatever becomes of the rollback: locks that
    /// it cannot remove expire, and their next reader rolls them back.
    async fn roll_back(&self, why: CommandError) -> TransactionError {
        for writes in self.by_region() {
            let _ = self.store.execute(Rollback { keys: keys_of(writes), start_ts: self.start_ts }).await;
        }
        TransactionError::RolledBack(why)
    }
}

fn keys_of(writes: Vec<Mutation>) -> Vec<Vec<u8>> {
    writes.into_iter().map(|write| write.key().to_vec()).collect()
}
