//! A client of transactions: moves money between accounts in two-phase commit, audits them, and writes down what it
//! read and what it was told. It gives up in the middle now and then, so that others have to resolve its locks.

use std::{cell::RefCell, rc::Rc, time::Duration};

use crate::{
    command::{
        AllocateTimestamps, BatchGet, CheckTxnStatus, Commit, Mutation, Prewrite, Request, ResolveLock,
        Rollback, TxnStatus,
    },
    error::{Error, LockInfo},
    simulator::{
        invariants::snapshot_isolation::{Fate, Ledger, Read},
        port::{Known, Port},
    },
    txn::timestamp,
};

/// The accounts.
pub(super) const ACCOUNTS: u32 = 4;
/// What each has while nobody has written it.
pub(super) const OPENING: i64 = 100;
/// How often a client tries before it gives a step up.
const TRIES: usize = 12;
/// How long others respect a lock, in milliseconds.
const LOCK_TTL_MS: u64 = 60;
/// Where the clients' wall clocks start, in milliseconds.
const WALL_MS: i64 = 1_000_000;

pub(super) fn account(number: u32) -> Vec<u8> {
    format!("account-{number}").into_bytes()
}

/// A transaction cannot go on.
struct GivenUp;

/// A client, while it lives.
struct Teller {
    port: Rc<Port>,
    ledger: Rc<RefCell<Ledger>>,
}

/// Does so many transactions, with pauses.
pub(super) async fn run(port: Rc<Port>, ledger: Rc<RefCell<Ledger>>, transactions: usize) {
    let teller = Teller { port, ledger };
    for _ in 0..transactions {
        let (pause, audits) = {
            let mut random = teller.port.random.borrow_mut();
            (random.between(Duration::ZERO, Duration::from_millis(15)), random.one_in(3))
        };
        teller.port.sleep(pause).await;
        let _ = if audits { teller.audit().await } else { teller.transfer().await };
    }
}

/// Audits once, however long it takes.
pub(super) async fn audit(port: Rc<Port>, ledger: Rc<RefCell<Ledger>>) {
    let teller = Teller { port, ledger };
    while teller.audit().await.is_err() {
        teller.port.look_anywhere();
        teller.port.sleep(Duration::from_millis(20)).await;
    }
}

impl Teller {
    async fn timestamp(&self) -> Result<u64, GivenUp> {
        let wall = WALL_MS + self.port.now.get().as_millis() as i64 + self.port.wall_ahead_ms.get();
        let at_least = timestamp::compose(wall.max(1) as u64, 0);
        match self.port.insist(AllocateTimestamps { at_least, window: 1 }, TRIES).await {
            Known::Applied(range) => Ok(range.first),
            _ => Err(GivenUp),
        }
    }

    async fn audit(&self) -> Result<(), GivenUp> {
        let read_ts = self.timestamp().await?;
        let all: Vec<_> = (0..ACCOUNTS).collect();
        self.read(&all, read_ts).await.map(|_| ())
    }

    /// Reads accounts, and writes down what it read.
    async fn read(&self, numbers: &[u32], read_ts: u64) -> Result<Vec<i64>, GivenUp> {
        let keys: Vec<_> = numbers.iter().map(|number| account(*number)).collect();
        let mut pairs = Vec::new();
        for keys in self.port.by_region(keys.clone(), Vec::clone) {
            let request = |bypass_locks| BatchGet { keys: keys.clone(), read_ts, bypass_locks };
            pairs.extend(self.past_locks(Some(read_ts), request).await?);
        }
        let balances: Vec<_> = keys
            .iter()
            .map(|key| pairs.iter().find(|pair| pair.key == *key))
            .map(|pair| pair.map_or(Some(OPENING), |pair| String::from_utf8_lossy(&pair.value).parse().ok()))
            .map(|balance| balance.unwrap_or(i64::MIN))
            .collect();
        let balances_read = numbers.iter().copied().zip(balances.iter().copied()).collect();
        self.ledger.borrow_mut().reads.push(Read { read_ts, balances: balances_read });
        Ok(balances)
    }

    async fn transfer(&self) -> Result<(), GivenUp> {
        let start_ts = self.timestamp().await?;
        let (from, to, amount) = {
            let mut random = self.port.random.borrow_mut();
            let from = random.below(ACCOUNTS as usize) as u32;
            (
                from,
                (from + 1 + random.below(ACCOUNTS as usize - 1) as u32) % ACCOUNTS,
                random.below(20) as i64,
            )
        };
        let balances = self.read(&[from, to], start_ts).await?;
        let put =
            |number, balance: i64| Mutation::Put { key: account(number), value: balance.to_string().into() };
        let mutations = vec![put(from, balances[0] - amount), put(to, balances[1] + amount)];
        self.ledger.borrow_mut().begin(start_ts);
        let prewritten = self.prewrite(mutations, start_ts).await;
        if prewritten.is_err() || self.gives_up() {
            // No commit was or will be proposed.
            self.ledger.borrow_mut().decide(start_ts, Fate::Aborted);
            if !self.gives_up() {
                for keys in self.port.by_region(vec![account(from), account(to)], Vec::clone) {
                    let _ = self.port.insist(Rollback { keys, start_ts }, 2).await;
                }
            }
            return Err(GivenUp);
        }
        self.commit(start_ts, from, to).await
    }

    /// Locks the keys, region by region. The first one is the primary key.
    async fn prewrite(&self, mutations: Vec<Mutation>, start_ts: u64) -> Result<(), GivenUp> {
        let primary = mutations[0].key().to_vec();
        for mutations in self.port.by_region(mutations, |mutation| mutation.key().to_vec()) {
            let prewrite = |_| Prewrite {
                mutations: mutations.clone(),
                primary: primary.clone(),
                start_ts,
                lock_ttl_ms: LOCK_TTL_MS,
                txn_size: 2,
                min_commit_ts: 0,
            };
            self.past_locks(None, prewrite).await?;
        }
        Ok(())
    }

    async fn commit(&self, start_ts: u64, primary: u32, secondary: u32) -> Result<(), GivenUp> {
        for _ in 0..TRIES {
            let Ok(commit_ts) = self.timestamp().await else { break };
            let commit = |number| Commit { keys: vec![account(number)], start_ts, commit_ts };
            match self.port.insist(commit(primary), TRIES).await {
                Known::Applied(()) => {
                    self.ledger.borrow_mut().decide(start_ts, Fate::Committed { commit_ts });
                    if !self.gives_up() {
                        let _ = self.port.insist(commit(secondary), 3).await;
                    }
                    return Ok(());
                }
                // A reader was promised that nothing commits below its timestamp.
                Known::NotExecuted(Some(Error::CommitTsExpired { .. })) => {}
                Known::NotExecuted(Some(Error::TxnLockNotFound { .. })) => break,
                // It was not executed this time, but an earlier try may have been.
                Known::NotExecuted(_) | Known::Unknown => {
                    self.ledger.borrow_mut().decide(start_ts, Fate::Unknown);
                    return Err(GivenUp);
                }
            }
        }
        self.ledger.borrow_mut().decide(start_ts, Fate::Aborted);
        Err(GivenUp)
    }

    fn gives_up(&self) -> bool {
        self.port.random.borrow_mut().one_in(8)
    }

    /// Repeats a command until no lock of another transaction is in its way. A reader names its timestamp.
    async fn past_locks<R: Request + Clone>(
        &self,
        reads_at: Option<u64>,
        request: impl Fn(Vec<u64>) -> R,
    ) -> Result<R::Output, GivenUp> {
        let mut bypass = Vec::new();
        for _ in 0..TRIES {
            match self.port.insist(request(bypass.clone()), TRIES).await {
                Known::Applied(output) => return Ok(output),
                Known::NotExecuted(Some(Error::KeyIsLocked(lock))) => {
                    if self.resolve(&lock, reads_at).await? {
                        bypass.push(lock.start_ts);
                    }
                }
                _ => return Err(GivenUp),
            }
        }
        Err(GivenUp)
    }

    /// Follows a lock to the fate of its transaction. Says whether a reader may read past it.
    async fn resolve(&self, lock: &LockInfo, reads_at: Option<u64>) -> Result<bool, GivenUp> {
        let current_ts = self.timestamp().await?;
        let check = CheckTxnStatus {
            primary: lock.primary.clone(),
            lock_ts: lock.start_ts,
            caller_start_ts: reads_at.unwrap_or(0),
            current_ts,
            rollback_if_not_exist: timestamp::is_expired(lock.start_ts, lock.ttl_ms, current_ts),
        };
        let commit_ts = match self.port.insist(check, TRIES).await {
            Known::Applied(TxnStatus::Uncommitted { min_commit_ts_pushed: true, .. })
                if reads_at.is_some() =>
            {
                return Ok(true);
            }
            Known::Applied(TxnStatus::Uncommitted { .. })
            | Known::NotExecuted(Some(Error::TxnNotFound { .. })) => {
                self.port.sleep(Duration::from_millis(10)).await;
                return Ok(false);
            }
            Known::Applied(TxnStatus::Committed { commit_ts }) => commit_ts,
            Known::Applied(_) => 0,
            _ => return Err(GivenUp),
        };
        let resolve = ResolveLock { start_ts: lock.start_ts, commit_ts, keys: vec![lock.key.clone()] };
        match self.port.insist(resolve, TRIES).await {
            Known::Applied(()) => Ok(false),
            _ => Err(GivenUp),
        }
    }
}
