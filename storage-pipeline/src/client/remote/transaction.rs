//! Transactions on a cluster: the same steps as in a store of this process, awaited.

use std::{future::Future, time::Duration};

use super::Client;
use crate::{
    client::{TransactionError, executor::Executor, transaction::Transaction},
    command::{Command, KvPair, Request},
    error::{CommandError, Outcome},
    region::Regions,
};

impl Executor for Client {
    fn execute<R: Request>(&self, request: R) -> impl Future<Output = Outcome<R::Output>> + Send {
        let command: Command = request.into();
        async move { super::typed(self.run(command, None, self.0.config.timeout).await, R::output) }
    }

    async fn timestamp(&self) -> Outcome<u64> {
        Self::timestamp(self).await
    }

    async fn pause(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }

    fn regions(&self) -> &Regions {
        Self::regions(self)
    }

    fn timeout(&self) -> Duration {
        self.0.config.timeout
    }
}

impl Transaction<Client> {
    /// The value of a key, with this transaction's own writes.
    ///
    /// # Errors
    /// What the store says; a lock that outlives the timeout is [`Error::KeyIsLocked`](crate::Error::KeyIsLocked).
    pub async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, CommandError> {
        self.read(key).await
    }

    /// The first `limit` keys in `start..end` with their values, without this transaction's own writes. An empty
    /// `end` means no bound.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<KvPair>, CommandError> {
        self.read_range(start, end, limit).await
    }

    /// Writes everything, or nothing. Returns the commit timestamp, or the start timestamp where nothing was written.
    ///
    /// # Errors
    /// [`TransactionError::RolledBack`] promises that nothing was written; [`TransactionError::Undetermined`] says
    /// that nobody knows, and a later reader decides.
    pub async fn commit(self) -> Result<u64, TransactionError> {
        self.write_all().await
    }
}
