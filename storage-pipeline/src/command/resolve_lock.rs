//! Gives the locks that a settled transaction left behind the fate of their primary key.

use super::{
    Processed, Request, Response,
    commit::encode_keys,
    execute::{Execute, size_of_keys},
    latch, validate,
};
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
    txn::{
        MvccReader, MvccTxn,
        commit::commit_key,
        rollback::{Protection, cleanup_key},
    },
};

/// Commits or rolls back a transaction on a list of keys, as [`CheckTxnStatus`](super::CheckTxnStatus) told.
///
/// Repeating it changes nothing. All keys are resolved, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveLock {
    /// Start timestamp of the transaction.
    pub start_ts: u64,
    /// Its commit timestamp; zero if it was rolled back.
    pub commit_ts: u64,
    /// The keys that it left locked.
    pub keys: Vec<Vec<u8>>,
}

impl Request for ResolveLock {
    type Output = ();

    fn output(response: Response) -> Option<()> {
        matches!(response, Response::Done).then_some(())
    }
}

impl Execute for ResolveLock {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::timestamp("start_ts", self.start_ts)?;
        if self.commit_ts != 0 {
            validate::later("commit_ts", self.commit_ts, self.start_ts)?;
        }
        validate::keys("keys", &self.keys, config)
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
            match self.commit_ts {
                0 => cleanup_key(&mut txn, &mut reader, key, 0, Protection::Collapsible)?,
                commit_ts => commit_key(&mut txn, &mut reader, key, commit_ts)?,
            }
        }
        Ok(Processed { modifies: txn.into_modifies(), response: Response::Done })
    }
}
