//! Messages to the store: each answer that tells a fate must agree with what was told before.

use super::run::{Fate, Run, Txn};
use crate::{
    Error, LockInfo,
    command::{CheckTxnStatus, Cleanup, Command, ResolveLock, Response, Rollback, TxnStatus},
};

impl Run {
    pub(super) fn send(&mut self, command: impl Into<Command>) -> Result<Response, Error> {
        let command = command.into();
        self.sent.push(command.clone());
        self.deliver(command)
    }

    /// Runs a command and draws from its answer whatever it says about the fate of its transaction.
    pub(super) fn deliver(&mut self, command: Command) -> Result<Response, Error> {
        let answer = self.store.run_command(command.clone());
        if let Err(Error::Corrupt(what)) = &answer {
            panic!("{command:?}: {what}");
        }
        match (&command, &answer) {
            (Command::Commit(commit), Ok(_)) => {
                let commit_ts = commit.commit_ts;
                self.by_start(commit.start_ts).decide(Fate::Committed { commit_ts });
            }
            (Command::Rollback(Rollback { keys, start_ts }), Ok(_)) => {
                let txn = self.by_start(*start_ts);
                if keys.contains(&txn.primary()) {
                    txn.decide(Fate::RolledBack);
                }
            }
            (Command::Cleanup(Cleanup { start_ts, .. }), Ok(_)) => {
                self.by_start(*start_ts).decide(Fate::RolledBack);
            }
            (Command::Cleanup(_) | Command::Rollback(_), Err(Error::Committed { start_ts, commit_ts })) => {
                self.by_start(*start_ts).decide(Fate::Committed { commit_ts: *commit_ts });
            }
            (Command::CheckTxnStatus(check), Ok(Response::TxnStatus(status))) => {
                let txn = self.by_start(check.lock_ts);
                match status {
                    TxnStatus::Committed { commit_ts } => {
                        txn.decide(Fate::Committed { commit_ts: *commit_ts })
                    }
                    TxnStatus::Uncommitted { .. } => assert_eq!(txn.fate, Fate::Open),
                    _ => txn.decide(Fate::RolledBack),
                }
            }
            (Command::Prewrite(prewrite), answer) => {
                let is_done = answer.is_ok();
                let safe_point = self.safe_point;
                let txn = self.by_start(prewrite.start_ts);
                if matches!(txn.fate, Fate::Committed { .. }) && txn.start_ts >= safe_point {
                    assert!(is_done, "{prewrite:?} was done and is then refused: {answer:?}");
                }
                if txn.fate == Fate::RolledBack && prewrite.mutations[0].key() == txn.primary() {
                    assert!(!is_done, "{txn:?} comes to life again");
                }
            }
            _ => {}
        }
        answer
    }

    pub(super) fn by_start(&mut self, start_ts: u64) -> &mut Txn {
        self.txns
            .iter_mut()
            .find(|txn| txn.start_ts == start_ts)
            .expect("only known transactions are asked for")
    }

    /// A message arrives again. Of a transaction from below the safe point nobody sends any more what asks its
    /// primary key, but its own client may have sent anything.
    pub(super) fn repeat(&mut self, command: Command) {
        let asked = match &command {
            Command::Cleanup(cleanup) => cleanup.start_ts,
            Command::CheckTxnStatus(check) => check.lock_ts,
            Command::Rollback(rollback) => rollback.start_ts,
            _ => u64::MAX,
        };
        if asked >= self.safe_point {
            let _ = self.deliver(command);
        }
    }

    /// Asks a lock's primary key and lets the lock follow. Returns the transaction if its locks can be passed.
    pub(super) fn resolve(&mut self, lock: &LockInfo, caller_start_ts: u64) -> Option<u64> {
        let current_ts = self.now();
        let check = CheckTxnStatus {
            primary: lock.primary.clone(),
            lock_ts: lock.start_ts,
            caller_start_ts,
            current_ts,
            rollback_if_not_exist: true,
        };
        let Ok(Response::TxnStatus(status)) = self.send(check) else {
            panic!("a lock names its primary key: {lock:?}")
        };
        let commit_ts = match status {
            TxnStatus::Uncommitted { min_commit_ts_pushed, .. } => {
                return min_commit_ts_pushed.then_some(lock.start_ts);
            }
            TxnStatus::Committed { commit_ts } => commit_ts,
            _ => 0,
        };
        self.send(ResolveLock { start_ts: lock.start_ts, commit_ts, keys: vec![lock.key.clone()] })
            .expect("a lock follows its primary key");
        None
    }
}
