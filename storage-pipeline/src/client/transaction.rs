//! A client's transaction: reads at one timestamp, writes kept here until commit, two-phase commit by the store's
//! commands. Locks of others are resolved as Percolator does: by asking their primary key.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use crate::{
    client::TransactionError,
    command::{
        CheckTxnStatus, Commit, Get, KvPair, Mutation, Prewrite, Request, ResolveLock, Rollback, Scan,
        TxnStatus,
    },
    error::{CommandError, Error, LockInfo, Outcome},
    storage::Storage,
    txn::timestamp,
};

/// How long a transaction's locks live from its start, in milliseconds, if its client vanishes.
const LOCK_TTL_MS: u64 = 3_000;
/// The first pause before a lock is looked at again; each next one is twice as long, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(50);

/// A transaction with snapshot isolation. Dropping it undoes nothing, since nothing was written before `commit`.
///
/// ```
/// use storage_pipeline::{Config, Storage};
/// let dir = tempfile::tempdir()?;
/// let storage = Storage::open(Config::new(dir.path()))?;
/// let mut transfer = storage.begin().into_result()?;
/// transfer.put(b"alice", b"7");
/// transfer.put(b"bob", b"3");
/// assert_eq!(transfer.get(b"alice")?.as_deref(), Some(&b"7"[..]), "it sees its own writes");
/// transfer.commit()?;
/// assert_eq!(storage.begin().into_result()?.get(b"bob")?.as_deref(), Some(&b"3"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Transaction {
    storage: Storage,
    start_ts: u64,
    timeout: Duration,
    writes: BTreeMap<Vec<u8>, Mutation>,
}

impl Transaction {
    pub(crate) fn new(storage: Storage, start_ts: u64) -> Self {
        let timeout = storage.default_timeout();
        Self { storage, start_ts, timeout, writes: BTreeMap::new() }
    }

    /// The timestamp at which it reads.
    #[must_use]
    pub fn start_ts(&self) -> u64 {
        self.start_ts
    }

    /// The value of a key, with this transaction's own writes.
    ///
    /// # Errors
    /// What the store says; a lock that outlives the timeout is [`Error::KeyIsLocked`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, CommandError> {
        match self.writes.get(key) {
            Some(Mutation::Put { value, .. } | Mutation::Insert { value, .. }) => Ok(Some(value.clone())),
            Some(Mutation::Delete { .. }) => Ok(None),
            _ => self.past_locks(Purpose::Read, |bypass_locks| Get {
                key: key.to_vec(),
                read_ts: self.start_ts,
                bypass_locks,
            }),
        }
    }

    /// The first `limit` keys in `start..end` with their values, without this transaction's own writes. An empty
    /// `end` means no bound.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<KvPair>, CommandError> {
        self.past_locks(Purpose::Read, |bypass_locks| Scan {
            start_key: start.to_vec(),
            end_key: end.to_vec(),
            limit,
            read_ts: self.start_ts,
            reverse: false,
            key_only: false,
            bypass_locks,
        })
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

    /// Writes everything, or nothing. Returns the commit timestamp, or the start timestamp where nothing was written.
    ///
    /// # Errors
    /// [`TransactionError::RolledBack`] promises that nothing was written; [`TransactionError::Undetermined`] says
    /// that the store does not know, and a later reader decides.
    pub fn commit(self) -> Result<u64, TransactionError> {
        let Some(primary) = self.writes.keys().next().cloned() else { return Ok(self.start_ts) };
        if let Err(error) = self.prewrite(&primary) {
            return Err(self.roll_back(error));
        }
        loop {
            let commit_ts = match self.storage.timestamp().into_result() {
                Ok(commit_ts) => commit_ts,
                Err(error) => return Err(self.roll_back(error)),
            };
            let keys = self.writes.keys().cloned().collect();
            match self.storage.execute(Commit { keys, start_ts: self.start_ts, commit_ts }) {
                Outcome::Applied(()) => return Ok(commit_ts),
                // A reader was promised meanwhile that nothing commits below its timestamp. A later one will do.
                Outcome::NotExecuted(Error::CommitTsExpired { .. }) => {}
                Outcome::NotExecuted(error) => return Err(self.roll_back(CommandError::NotExecuted(error))),
                Outcome::Indeterminate(cause) => return Err(TransactionError::Undetermined(cause)),
            }
        }
    }

    fn write(&mut self, mutation: Mutation) {
        self.writes.insert(mutation.key().to_vec(), mutation);
    }

    fn prewrite(&self, primary: &[u8]) -> Result<(), CommandError> {
        let mutations: Vec<_> = self.writes.values().cloned().collect();
        self.past_locks(Purpose::Write, |_| Prewrite {
            txn_size: mutations.len() as u64,
            mutations: mutations.clone(),
            primary: primary.to_vec(),
            start_ts: self.start_ts,
            lock_ttl_ms: LOCK_TTL_MS,
            min_commit_ts: 0,
        })
    }

    /// No commit was or will be proposed, so nothing of it is ever seen, whatever becomes of the rollback: locks that
    /// it cannot remove expire, and their next reader rolls them back.
    fn roll_back(&self, why: CommandError) -> TransactionError {
        let keys = self.writes.keys().cloned().collect();
        let _ = self.storage.execute(Rollback { keys, start_ts: self.start_ts });
        TransactionError::RolledBack(why)
    }

    /// Runs a command until no lock of another transaction is in its way, or the time is up.
    fn past_locks<R: Request>(
        &self,
        purpose: Purpose,
        request: impl Fn(Vec<u64>) -> R,
    ) -> Result<R::Output, CommandError> {
        let end = Instant::now() + self.timeout;
        let mut pause = FIRST_PAUSE;
        let mut bypass = Vec::new();
        loop {
            match self.storage.execute(request(bypass.clone())).into_result() {
                Err(CommandError::NotExecuted(Error::KeyIsLocked(lock))) if Instant::now() < end => {
                    match self.resolve(purpose, &lock)? {
                        Resolved::Gone => {}
                        Resolved::Passable => bypass.push(lock.start_ts),
                        Resolved::Alive => {
                            thread::sleep(pause);
                            pause = (pause * 2).min(LAST_PAUSE);
                        }
                    }
                }
                other => return other,
            }
        }
    }

    /// Asks the lock's primary key for the fate of its transaction and lets this one key follow it.
    fn resolve(&self, purpose: Purpose, lock: &LockInfo) -> Result<Resolved, CommandError> {
        let current_ts = self.storage.timestamp().into_result()?;
        let status = self.storage.execute(CheckTxnStatus {
            primary: lock.primary.clone(),
            lock_ts: lock.start_ts,
            // A reader may push a living transaction behind its own timestamp; to a writer that is of no use.
            caller_start_ts: if purpose == Purpose::Read { self.start_ts } else { 0 },
            current_ts,
            // Before it expires, its primary key may just not be prewritten yet.
            rollback_if_not_exist: timestamp::is_expired(lock.start_ts, lock.ttl_ms, current_ts),
        });
        let commit_ts = match status.into_result() {
            Ok(TxnStatus::Uncommitted { min_commit_ts_pushed: true, .. }) if purpose == Purpose::Read => {
                return Ok(Resolved::Passable);
            }
            Ok(TxnStatus::Uncommitted { .. }) => return Ok(Resolved::Alive),
            Err(CommandError::NotExecuted(Error::TxnNotFound { .. })) => return Ok(Resolved::Alive),
            Ok(TxnStatus::Committed { commit_ts }) => commit_ts,
            Ok(_) => 0,
            Err(error) => return Err(error),
        };
        let resolve = ResolveLock { start_ts: lock.start_ts, commit_ts, keys: vec![lock.key.clone()] };
        self.storage.execute(resolve).into_result().map(|()| Resolved::Gone)
    }
}

/// What a transaction wants of a key that another one has locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Write,
}

/// What became of a lock that stood in the way.
enum Resolved {
    /// It is gone.
    Gone,
    /// It stays, but its transaction will commit later than this one reads.
    Passable,
    /// It stays.
    Alive,
}
