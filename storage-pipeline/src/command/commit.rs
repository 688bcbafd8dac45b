//! Second phase of a commit: turns locks into committed versions. The commit of the primary key decides.

use super::{
    Processed, Request, Response,
    execute::{Execute, size_of_keys},
    latch, validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
    txn::{Key, MvccReader, MvccTxn, commit::commit_key},
};

/// Commits keys that were prewritten. All of them are, or none.
///
/// Repeating it changes nothing. [`Error::TxnLockNotFound`] says that the transaction was rolled back, or never
/// prewritten; [`Error::CommitTsExpired`] that a greater commit timestamp is needed; [`Error::Committed`] that it is
/// committed at another timestamp; [`Error::GcTooEarly`] that its records are collected, so that nobody can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The keys. The primary key must be committed before the others, or with them.
    pub keys: Vec<Vec<u8>>,
    /// Start timestamp of the transaction.
    pub start_ts: u64,
    /// Its commit timestamp, which must have been allocated after the last prewrite was done.
    pub commit_ts: u64,
}

impl Request for Commit {
    type Output = ();

    fn output(response: Response) -> Option<()> {
        matches!(response, Response::Done).then_some(())
    }
}

impl Execute for Commit {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::keys("keys", &self.keys, config)?;
        validate::timestamp("start_ts", self.start_ts)?;
        validate::later("commit_ts", self.commit_ts, self.start_ts)
    }

    fn latches(&self) -> Vec<u64> {
        latch::txn_keys(&self.keys)
    }

    fn for_each_key(&self, each: &mut dyn FnMut(&[u8])) {
        self.keys.iter().for_each(|key| each(key));
    }

    fn size_bytes(&self) -> usize {
        size_of_keys(&self.keys)
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        let keys = encode_keys(&self.keys);
        let mut reader = MvccReader::for_keys(snapshot, &keys);
        let mut txn = MvccTxn::new(self.start_ts);
        for key in keys {
            commit_key(&mut txn, &mut reader, key, self.commit_ts)?;
        }
        Ok(Processed { modifies: txn.into_modifies(), response: Response::Done })
    }
}

/// The encoded forms of a list of keys.
pub(super) fn encode_keys(keys: &[Vec<u8>]) -> Vec<Key> {
    keys.iter().map(|key| Key::from_raw(key)).collect()
}
