//! Rolls a transaction back on a list of keys: what its own client does when it gives up.

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
        rollback::{Protection, cleanup_key},
    },
};

/// Takes back whatever the transaction did to the keys, and refuses its prewrite of them from now on.
///
/// Repeating it changes nothing. [`Error::Committed`] says that the transaction is committed on one of the keys; then
/// nothing is changed on the others either. Of a transaction from below the GC safe point the record that says so may
/// be collected, so success then only means that it will not commit from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollback {
    /// The keys, whether they were prewritten or not.
    pub keys: Vec<Vec<u8>>,
    /// Start timestamp of the transaction.
    pub start_ts: u64,
}

impl Request for Rollback {
    type Output = ();

    fn output(response: Response) -> Option<()> {
        matches!(response, Response::Done).then_some(())
    }
}

impl Execute for Rollback {
    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::keys("keys", &self.keys, config)?;
        validate::timestamp("start_ts", self.start_ts)
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
            cleanup_key(&mut txn, &mut reader, key, 0, Protection::Collapsible)?;
        }
        Ok(Processed { modifies: txn.into_modifies(), response: Response::Done })
    }
}
