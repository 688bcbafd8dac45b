//! What a transaction does about locks of others: it asks their primary keys, and lets each key follow what those say.

use std::time::{Duration, Instant};

use crate::{
    client::{executor::Executor, transaction::Transaction},
    command::{CheckTxnStatus, Request, ResolveLock, TxnStatus},
    error::{CommandError, Error, LockInfo},
    txn::timestamp,
};

/// The first pause before a lock is looked at again; each next one is twice as long, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(50);

impl<S: Executor> Transaction<S> {
    /// Runs a command until no lock of another transaction is in its way, or the time is up.
    pub(super) async fn past_locks<R: Request>(
        &self,
        purpose: Purpose,
        request: impl Fn(Vec<u64>) -> R,
    ) -> Result<R::Output, CommandError> {
        let end = Instant::now() + self.timeout;
        let mut pause = FIRST_PAUSE;
        let mut bypass = Vec::new();
        loop {
            let request = request(bypass.clone());
            match self.store.execute(request).await.into_result() {
                Err(CommandError::NotExecuted(Error::KeyIsLocked(lock))) if Instant::now() < end => {
                    match self.resolve(purpose, &lock).await? {
                        Resolved::Gone => {}
                        Resolved::Passable => bypass.push(lock.start_ts),
                        Resolved::Alive => {
                            self.store.pause(pause).await;
                            pause = (pause * 2).min(LAST_PAUSE);
                        }
                    }
                }
                other => return other,
            }
        }
    }

    /// Asks the lock's primary key for the fate of its transaction and lets this one key follow it.
    async fn resolve(&self, purpose: Purpose, lock: &LockInfo) -> Result<Resolved, CommandError> {
        let current_ts = self.store.timestamp().await.into_result()?;
        let status = CheckTxnStatus {
            primary: lock.primary.clone(),
            lock_ts: lock.start_ts,
            // A reader may push a living transaction behind its own timestamp; to a writer that is of no use.
            caller_start_ts: if purpose == Purpose::Read { self.start_ts } else { 0 },
            current_ts,
            // Before it expires, its primary key may just not be prewritten yet.
            rollback_if_not_exist: timestamp::is_expired(lock.start_ts, lock.ttl_ms, current_ts),
        };
        let commit_ts = match self.store.execute(status).await.into_result() {
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
        self.store.execute(resolve).await.into_result().map(|()| Resolved::Gone)
    }
}

/// What a transaction wants of a key that another one has locked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
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
