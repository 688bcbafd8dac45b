//! Transactions on a store in this process: its commands block, so that each step of a transaction is done when it is
//! first polled. Hands on the blocking forms.

use std::{
    future::{Future, ready},
    pin::pin,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use crate::{
    client::{TransactionError, executor::Executor, transaction::Transaction},
    command::{KvPair, Request},
    error::{CommandError, Outcome},
    region::Regions,
    storage::Storage,
};

impl Executor for Storage {
    fn execute<R: Request>(&self, request: R) -> impl Future<Output = Outcome<R::Output>> + Send {
        ready(Self::execute(self, request))
    }

    fn timestamp(&self) -> impl Future<Output = Outcome<u64>> + Send {
        ready(Self::timestamp(self))
    }

    fn pause(&self, pause: Duration) -> impl Future<Output = ()> + Send {
        thread::sleep(pause);
        ready(())
    }

    fn regions(&self) -> &Regions {
        self.all_regions()
    }

    fn timeout(&self) -> Duration {
        self.default_timeout()
    }
}

impl Transaction<Storage> {
    /// The value of a key, with this transaction's own writes.
    ///
    /// # Errors
    /// What the store says; a lock that outlives the timeout is [`Error::KeyIsLocked`](crate::Error::KeyIsLocked).
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, CommandError> {
        at_once(self.read(key))
    }

    /// The first `limit` keys in `start..end` with their values, without this transaction's own writes. An empty
    /// `end` means no bound.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<KvPair>, CommandError> {
        at_once(self.read_range(start, end, limit))
    }

    /// Writes everything, or nothing. Returns the commit timestamp, or the start timestamp where nothing was written.
    ///
    /// # Errors
    /// [`TransactionError::RolledBack`] promises that nothing was written; [`TransactionError::Undetermined`] says
    /// that the store does not know, and a later reader decides.
    pub fn commit(self) -> Result<u64, TransactionError> {
        at_once(self.write_all())
    }
}

/// What comes of steps that never wait for a waker.
fn at_once<F: Future>(steps: F) -> F::Output {
    match pin!(steps).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("every step blocks until it is done"),
    }
}
