//! First phase of a commit: checks each key for conflicts, locks it and stores its value. Hands on locks, or the
//! first thing that stood in the way.

use std::collections::HashSet;

use super::{
    Mutation, Processed, Request, Response,
    execute::{Execute, size_of},
    latch, validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand, WriteConflict},
    txn::{Key, Lock, LockType, MvccReader, MvccTxn, TxnCommitRecord, Write, meta},
};

/// Locks the keys of a transaction and stores its values. All of it happens, or nothing.
///
/// A transaction may prewrite its keys in several commands. Once all are done it is committed by a [`Commit`] of the
/// primary key. A prewrite that is repeated changes nothing, after the commit too.
///
/// [`Commit`]: super::Commit
///
/// ```
/// use storage_pipeline::{
///     Error,
///     command::{Command, Commit, Get, Mutation, Prewrite, Response},
///     engine::{Engine, WriteBatch, memory::MemoryEngine},
/// };
///
/// let engine = MemoryEngine::default();
/// let run = |command: Command| -> Result<Response, Error> {
///     let processed = command.process(&*engine.snapshot())?;
///     let mut batch = WriteBatch::default();
///     processed.modifies.into_iter().for_each(|modify| batch.push(modify));
///     engine.write(&batch)?;
///     Ok(processed.response)
/// };
///
/// let (key, value) = (b"k".to_vec(), b"v".to_vec());
/// let mutations = vec![Mutation::Put { key: key.clone(), value: value.clone() }];
/// run(Prewrite { mutations, primary: key.clone(), start_ts: 10, lock_ttl_ms: 3000, txn_size: 1, min_commit_ts: 0 }
///     .into())?;
///
/// // A reader who might have to see the value waits for the transaction's fate; an earlier one does not.
/// let get = |read_ts| Command::from(Get { key: b"k".to_vec(), read_ts, bypass_locks: vec![] });
/// assert!(matches!(run(get(20)), Err(Error::KeyIsLocked(_))));
/// assert_eq!(run(get(9))?, Response::Value(None));
///
/// run(Commit { keys: vec![key], start_ts: 10, commit_ts: 15 }.into())?;
/// assert_eq!(run(get(14))?, Response::Value(None));
/// assert_eq!(run(get(15))?, Response::Value(Some(value)));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prewrite {
    /// What the transaction does, each key once.
    pub mutations: Vec<Mutation>,
    /// The key whose lock decides the fate of the transaction. It is among the mutations of one of its prewrites.
    pub primary: Vec<u8>,
    /// Start timestamp of the transaction.
    pub start_ts: u64,
    /// How long others respect the locks, in milliseconds from the physical part of `start_ts`.
    pub lock_ttl_ms: u64,
    /// How many keys the whole transaction writes: a hint for those who wait for it.
    pub txn_size: u64,
    /// The least timestamp at which it may commit; zero leaves that to the start timestamp.
    pub min_commit_ts: u64,
}

impl Request for Prewrite {
    type Output = ();

    fn output(response: Response) -> Option<()> {
        matches!(response, Response::Done).then_some(())
    }
}

impl Execute for Prewrite {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        if self.mutations.is_empty() {
            return Err(InvalidCommand::EmptyList { field: "mutations".into() });
        }
        validate::key("primary", &self.primary, config)?;
        validate::timestamp("start_ts", self.start_ts)?;
        if self.min_commit_ts != 0 {
            validate::later("min_commit_ts", self.min_commit_ts, self.start_ts)?;
        }
        let mut seen = HashSet::with_capacity(self.mutations.len());
        for mutation in &self.mutations {
            let key = mutation.key();
            validate::key("mutations.key", key, config)?;
            validate::value("mutations.value", mutation.value().unwrap_or_default(), config)?;
            if !seen.insert(key) {
                return Err(InvalidCommand::DuplicateKey {
                    field: "mutations.key".into(),
                    key: key.to_vec(),
                });
            }
        }
        Ok(())
    }

    fn latches(&self) -> Vec<u64> {
        self.mutations.iter().map(|mutation| latch::txn(mutation.key())).collect()
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        self.mutations.iter().for_each(|mutation| each(mutation.key()));
    }

    fn size_bytes(&self) -> usize {
        // Every lock carries the primary key.
        let items = |each| [Mutation::key(each), each.value().unwrap_or_default(), &self.primary];
        size_of(self.mutations.iter().flat_map(items))
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        let keys: Vec<Key> = self.mutations.iter().map(|mutation| Key::from_raw(mutation.key())).collect();
        let mut reader = MvccReader::for_keys(snapshot, &keys);
        let mut txn = MvccTxn::new(self.start_ts);
        let mut lock = Lock {
            lock_type: LockType::Lock,
            primary: self.primary,
            start_ts: self.start_ts,
            ttl_ms: self.lock_ttl_ms,
            txn_size: self.txn_size,
            min_commit_ts: self.min_commit_ts.max(self.start_ts.saturating_add(1)),
            short_value: None,
        };
        for (key, mutation) in keys.into_iter().zip(self.mutations) {
            let check = check_key(&mut reader, &key, &lock, mutation.must_not_exist())?;
            if let (KeyCheck::Free, Some((lock_type, value))) = (check, mutation.into_lock()) {
                lock.lock_type = lock_type;
                txn.lock_key(key, &mut lock, value);
            }
        }
        Ok(Processed { modifies: txn.into_modifies(), response: Response::Done })
    }
}

/// Whether a key has still to be prewritten.
enum KeyCheck {
    Free,
    /// The transaction has locked or even committed it before: this command is a repetition.
    Done,
}

/// Checks one key for whatever forbids the transaction, whose lock is given, to write it.
fn check_key(
    reader: &mut MvccReader<'_>,
    key: &Key,
    own: &Lock,
    must_not_exist: bool,
) -> Result<KeyCheck, Error> {
    let lock = reader.load_lock(key)?;
    if lock.as_ref().is_some_and(|lock| lock.start_ts == own.start_ts) {
        return Ok(KeyCheck::Done);
    }
    let newest = reader.seek_write(key, u64::MAX)?;
    let refusal = match (lock, &newest) {
        (Some(lock), _) => Some(lock.blocks(key)),
        (None, Some((commit_ts, write))) if is_conflict(*commit_ts, write, own.start_ts) => {
            Some(write_conflict(key, own, *commit_ts, write)?)
        }
        _ => None,
    };
    if let Some(refusal) = refusal {
        let was_committed = newest.is_some_and(|(commit_ts, _)| commit_ts > own.start_ts)
            && matches!(reader.get_txn_commit_record(key, own.start_ts)?, TxnCommitRecord::Committed { .. });
        return if was_committed { Ok(KeyCheck::Done) } else { Err(refusal) };
    }
    // Below the safe point the records that would refuse this transaction may be gone.
    meta::check_safe_point(reader.snapshot(), own.start_ts)?;
    if must_not_exist && reader.visible_write(key, own.start_ts)?.is_some() {
        return Err(Error::AlreadyExist { key: key.to_raw()? });
    }
    Ok(KeyCheck::Free)
}

/// Whether the newest record of a key forbids a transaction to write it. A rollback that is newer does, too: it may
/// have replaced the transaction's own.
fn is_conflict(commit_ts: u64, newest: &Write, start_ts: u64) -> bool {
    commit_ts > start_ts || commit_ts == start_ts && newest.is_rollback_at_its_place()
}

fn write_conflict(key: &Key, own: &Lock, commit_ts: u64, other: &Write) -> Result<Error, Error> {
    Ok(Error::WriteConflict(Box::new(WriteConflict {
        key: key.to_raw()?,
        primary: own.primary.clone(),
        start_ts: own.start_ts,
        conflict_start_ts: other.start_ts,
        conflict_commit_ts: commit_ts,
    })))
}
