//! Random interleavings of transactions against a model of snapshot isolation: clients that stop half-way, others
//! that resolve what they left, garbage collection, and messages that arrive again, long after.
//!
//! | property | where |
//! |---|---|
//! | a transaction has one fate, and all its keys share it | `decide`, `Run::read_all` |
//! | a read sees, of each key, the newest version committed at or before its timestamp | `Run::read_all` |
//! | no two transactions that overlap and write one key both commit | `Run::check_writers` |
//! | a repeated command says the same and changes nothing | `testing::Store` |
//! | nothing is left behind: no long value without a record | `Run::check_values` |

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::{
    Error, LockInfo,
    command::{
        CheckTxnStatus, Cleanup, Command, Commit, Gc, Mutation, Prewrite, ResolveLock, Rollback, Scan,
        ScanGcKeys, ScanLock, TxnHeartBeat, TxnStatus, testing::*,
    },
    engine::Cf,
    txn::{Lock, LockType, Write, WriteType, keys::split_ts, timestamp::compose},
};

const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const TTL_MS: u64 = 60;

/// One step of somebody. Numbers choose among what exists, by remainder.
#[derive(Clone, Debug)]
enum Step {
    /// A new transaction; of each key, what it does to it, and how many keys it prewrites at once.
    Begin {
        kinds: [u8; 4],
        batch: usize,
    },
    /// The client of a transaction goes on: the next prewrite, a commit timestamp, the commit of the primary key, or
    /// that of the others.
    Advance {
        txn: usize,
    },
    /// The client gives up.
    GiveUp {
        txn: usize,
    },
    /// Somebody cleans up a transaction's primary key by force, or asks it for its fate.
    Cleanup {
        txn: usize,
    },
    Check {
        txn: usize,
        push: bool,
        roll_back: bool,
    },
    HeartBeat {
        txn: usize,
    },
    /// Somebody reads everything, so many timestamps ago, and resolves or passes what is in the way.
    Read {
        ago: u64,
        reverse: bool,
    },
    /// Everything below some timestamp is resolved and collected.
    Gc {
        ago: u64,
    },
    /// A command that was sent before arrives again.
    Repeat {
        sent: usize,
    },
    /// Time passes.
    Wait {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let txn = || 0usize..5;
    prop_oneof![
        5 => (any::<[u8; 4]>(), 1usize..4).prop_map(|(kinds, batch)| Step::Begin { kinds, batch }),
        30 => txn().prop_map(|txn| Step::Advance { txn }),
        1 => txn().prop_map(|txn| Step::GiveUp { txn }),
        1 => txn().prop_map(|txn| Step::Cleanup { txn }),
        2 => (txn(), any::<bool>(), any::<bool>())
            .prop_map(|(txn, push, roll_back)| Step::Check { txn, push, roll_back }),
        1 => txn().prop_map(|txn| Step::HeartBeat { txn }),
        4 => (0u64..40, any::<bool>()).prop_map(|(ago, reverse)| Step::Read { ago, reverse }),
        1 => (0u64..40).prop_map(|ago| Step::Gc { ago }),
        5 => any::<usize>().prop_map(|sent| Step::Repeat { sent }),
        4 => (1u64..50).prop_map(|ms| Step::Wait { ms }),
    ]
}

/// What the model knows of a transaction's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    RolledBack,
    Committed { commit_ts: u64 },
}

/// A transaction and its client.
#[derive(Debug)]
struct Txn {
    start_ts: u64,
    batch: usize,
    mutations: Vec<Mutation>,
    prewritten: usize,
    /// Where it wants to commit, or has.
    commit_ts: Option<u64>,
    fate: Fate,
    /// Its client has nothing more to do, or has given up.
    is_over: bool,
}

impl Txn {
    fn primary(&self) -> Vec<u8> {
        self.mutations[0].key().to_vec()
    }

    /// The one place where a fate is decided, and found to agree with what was decided before.
    fn decide(&mut self, fate: Fate) {
        assert!(self.fate == Fate::Open || self.fate == fate, "{self:?} is now told {fate:?}");
        self.fate = fate;
    }
}

#[derive(Default)]
struct Run {
    store: Store,
    txns: Vec<Txn>,
    sent: Vec<Command>,
    ms: u64,
    count: u64,
    safe_point: u64,
    /// How often reads were compared, and transactions committed: a run that does nothing proves nothing.
    compared: usize,
}

impl Run {
    fn now(&mut self) -> u64 {
        self.count += 1;
        compose(1000 + self.ms, self.count)
    }

    fn send(&mut self, command: impl Into<Command>) -> Result<crate::command::Response, Error> {
        let command = command.into();
        self.sent.push(command.clone());
        self.deliver(command)
    }

    /// Runs a command and draws from its answer whatever it says about the fate of its transaction.
    fn deliver(&mut self, command: Command) -> Result<crate::command::Response, Error> {
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
            (Command::CheckTxnStatus(check), Ok(crate::command::Response::TxnStatus(status))) => {
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

    fn by_start(&mut self, start_ts: u64) -> &mut Txn {
        self.txns
            .iter_mut()
            .find(|txn| txn.start_ts == start_ts)
            .expect("only known transactions are asked for")
    }

    fn step(&mut self, step: &Step) {
        let txn = match step {
            Step::Advance { txn } | Step::GiveUp { txn } | Step::Cleanup { txn } => Some(*txn),
            Step::Check { txn, .. } | Step::HeartBeat { txn } => Some(*txn),
            _ => None,
        };
        match (step, txn.map(|txn| self.txns.len().checked_sub(1 + txn))) {
            (_, Some(None)) => {}
            (Step::Advance { .. }, Some(Some(txn))) => self.advance(txn),
            (step, Some(Some(txn))) => self.disturb(step, txn),
            (Step::Begin { kinds, batch }, _) => self.begin(kinds, *batch),
            (Step::Read { ago, reverse }, _) => self.read(*ago, *reverse),
            (Step::Gc { ago }, _) => self.gc(*ago),
            (Step::Repeat { sent }, _) => {
                if let Some(command) = self.sent.get(sent % self.sent.len().max(1)).cloned() {
                    self.repeat(command);
                }
            }
            (Step::Wait { ms }, _) => self.ms += ms,
            _ => unreachable!("every step that names a transaction is handled above"),
        }
    }

    fn begin(&mut self, kinds: &[u8; 4], batch: usize) {
        let start_ts = self.now();
        let mutation = |(key, kind): (&&str, &u8)| {
            let value = format!("{key}{start_ts}").into_bytes().repeat(1 + usize::from(kind % 2) * 40);
            match kind % 7 {
                0 | 1 => None,
                2 | 3 => Some(put(key, value)),
                4 => Some(insert(key, value)),
                5 => Some(delete(key)),
                _ => Some(lock(key)),
            }
        };
        let mut mutations: Vec<_> = KEYS.iter().zip(kinds).filter_map(mutation).collect();
        let by = mutations.len().min(usize::from(kinds[0] % 3));
        mutations.rotate_left(by);
        if !mutations.is_empty() {
            let txn = Txn {
                start_ts,
                batch,
                mutations,
                prewritten: 0,
                commit_ts: None,
                fate: Fate::Open,
                is_over: false,
            };
            self.txns.push(txn);
        }
    }

    fn advance(&mut self, at: usize) {
        let txn = &self.txns[at];
        if txn.is_over {
            return;
        }
        let (start_ts, primary) = (txn.start_ts, txn.primary());
        let keys = |of: &[Mutation]| of.iter().map(|mutation| mutation.key().to_vec()).collect::<Vec<_>>();
        if txn.prewritten < txn.mutations.len() {
            let end = txn.mutations.len().min(txn.prewritten + txn.batch);
            let mutations = txn.mutations[txn.prewritten..end].to_vec();
            match self.send(Prewrite { lock_ttl_ms: TTL_MS, ..prewrite(&primary, start_ts, mutations) }) {
                Ok(_) => self.txns[at].prewritten = end,
                Err(Error::KeyIsLocked(lock)) => {
                    self.resolve(&lock, 0);
                }
                Err(_) => self.txns[at].is_over = true,
            }
            return;
        }
        let Some(commit_ts) = txn.commit_ts else {
            self.txns[at].commit_ts = Some(self.now());
            return;
        };
        let is_decided = txn.fate == Fate::Committed { commit_ts };
        let keys = if is_decided { keys(&txn.mutations) } else { vec![primary] };
        match self.send(Commit { keys, start_ts, commit_ts }) {
            Ok(_) => self.txns[at].is_over = is_decided,
            Err(Error::GcTooEarly { .. }) if is_decided => {
                assert!(commit_ts <= self.safe_point);
                self.txns[at].is_over = true;
            }
            Err(refusal) => {
                assert!(!is_decided, "{:?}: {refusal}", self.txns[at]);
                match refusal {
                    Error::CommitTsExpired { .. } => self.txns[at].commit_ts = None,
                    _ => {
                        self.txns[at].decide(Fate::RolledBack);
                        self.txns[at].is_over = true;
                    }
                }
            }
        }
    }

    fn disturb(&mut self, step: &Step, at: usize) {
        let current_ts = self.now();
        let txn = &mut self.txns[at];
        let (start_ts, primary) = (txn.start_ts, txn.primary());
        if start_ts < self.safe_point {
            // Its records may be collected, so its primary key must not be asked any more.
            return;
        }
        let _ = match step {
            Step::GiveUp { .. } if txn.is_over => return,
            Step::GiveUp { .. } => {
                txn.is_over = true;
                let keys = txn.mutations.iter().map(|mutation| mutation.key().to_vec()).collect();
                self.send(Rollback { keys, start_ts })
            }
            Step::Cleanup { .. } => self.send(Cleanup { key: primary, start_ts, current_ts: 0 }),
            Step::HeartBeat { .. } => {
                self.send(TxnHeartBeat { primary, start_ts, advise_ttl_ms: 2 * TTL_MS })
            }
            Step::Check { push, roll_back, .. } => self.send(CheckTxnStatus {
                primary,
                lock_ts: start_ts,
                caller_start_ts: if *push { current_ts } else { 0 },
                current_ts,
                rollback_if_not_exist: *roll_back,
            }),
            _ => unreachable!("the other steps disturb nobody"),
        };
    }

    /// A message arrives again. Of a transaction from below the safe point nobody sends any more what asks its
    /// primary key, but its own client may have sent anything.
    fn repeat(&mut self, command: Command) {
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
    fn resolve(&mut self, lock: &LockInfo, caller_start_ts: u64) -> Option<u64> {
        let current_ts = self.now();
        let check = CheckTxnStatus {
            primary: lock.primary.clone(),
            lock_ts: lock.start_ts,
            caller_start_ts,
            current_ts,
            rollback_if_not_exist: true,
        };
        let Ok(crate::command::Response::TxnStatus(status)) = self.send(check) else {
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

    fn read(&mut self, ago: u64, reverse: bool) {
        let read_ts = self.now().saturating_sub(ago << 16).max(1);
        self.read_all(read_ts, reverse);
    }

    fn read_all(&mut self, read_ts: u64, reverse: bool) {
        let mut bypass_locks = Vec::new();
        let found = loop {
            let scan = Scan {
                start_key: vec![],
                end_key: vec![],
                limit: usize::MAX,
                read_ts,
                reverse,
                key_only: false,
                bypass_locks: bypass_locks.clone(),
            };
            match self.store.run(scan) {
                Ok(pairs) => break pairs,
                Err(Error::KeyIsLocked(lock)) => bypass_locks.extend(self.resolve(&lock, read_ts)),
                Err(Error::GcTooEarly { safe_point, .. }) => {
                    assert!(safe_point == self.safe_point && read_ts < safe_point);
                    return;
                }
                Err(other) => panic!("{other}"),
            }
        };
        assert!(read_ts >= self.safe_point);
        let mut found: BTreeMap<_, _> = found.into_iter().map(|pair| (pair.key, pair.value)).collect();
        for key in KEYS {
            let seen = found.remove(key.as_bytes());
            assert_eq!(seen, self.expected(key, read_ts), "{key} at {read_ts}: {:#?}", self.txns);
        }
        self.compared += 1;
    }

    /// What the model says a read sees: the newest committed change at or before its timestamp.
    fn expected(&self, key: &str, read_ts: u64) -> Option<Vec<u8>> {
        let changes = self.writers(key).filter(|(commit_ts, mutation)| {
            *commit_ts <= read_ts && !matches!(mutation, Mutation::Lock { .. })
        });
        let (_, newest) = changes.max_by_key(|(commit_ts, _)| *commit_ts)?;
        newest.value().map(<[u8]>::to_vec)
    }

    fn writers<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (u64, &'a Mutation)> {
        self.txns.iter().filter_map(move |txn| {
            let Fate::Committed { commit_ts } = txn.fate else { return None };
            Some((commit_ts, txn.mutations.iter().find(|mutation| mutation.key() == key.as_bytes())?))
        })
    }

    fn gc(&mut self, ago: u64) {
        let safe_point = self.now().saturating_sub(ago << 18).max(1);
        let list = |run: &Self| {
            run.store
                .run(ScanLock { max_ts: safe_point, start_key: vec![], end_key: vec![], limit: 9 })
                .unwrap()
        };
        for lock in list(self) {
            self.resolve(&lock, 0);
        }
        let refused = !list(self).is_empty() && safe_point > self.safe_point;
        match self.store.run(Gc { safe_point, keys: vec![] }) {
            Ok(result) => {
                assert!(!refused);
                self.safe_point = self.safe_point.max(safe_point);
                assert_eq!(result.safe_point, self.safe_point);
            }
            Err(Error::KeyIsLocked(_)) => return assert!(refused),
            Err(other) => panic!("{other}"),
        }
        let safe_point = self.safe_point;
        let scan = || ScanGcKeys { safe_point, start_key: vec![], end_key: vec![], limit: usize::MAX };
        let keys = self.store.run(scan()).unwrap().keys;
        self.store.run(Gc { safe_point, keys }).unwrap();
        assert_eq!(self.store.run(scan()).unwrap().keys, Vec::<Vec<u8>>::new());
    }

    /// Lets all locks expire, resolves them and reads at every timestamp that matters.
    fn finish(&mut self) {
        self.ms += 100 * TTL_MS;
        let end = self.now();
        let mut moments: Vec<u64> = self.txns.iter().map(|txn| txn.start_ts).collect();
        moments.extend(self.txns.iter().filter_map(|txn| match txn.fate {
            Fate::Committed { commit_ts } => Some(commit_ts),
            _ => None,
        }));
        moments.extend([end, self.safe_point.max(1)]);
        for read_ts in moments {
            self.read_all(read_ts, false);
            self.read_all(read_ts, true);
        }
        for lock in
            self.store.run(ScanLock { max_ts: end, start_key: vec![], end_key: vec![], limit: 9 }).unwrap()
        {
            self.resolve(&lock, 0);
        }
        assert_eq!(self.store.contents_of(Cf::Lock), []);
        self.check_writers();
        self.check_values();
    }

    fn check_writers(&self) {
        for key in KEYS.map(str::as_bytes) {
            let writes = |txn: &&Txn| txn.mutations.iter().any(|mutation| mutation.key() == key);
            let mut spans: Vec<_> = self
                .txns
                .iter()
                .filter(writes)
                .filter_map(|txn| match txn.fate {
                    Fate::Committed { commit_ts } => Some((txn.start_ts, commit_ts)),
                    _ => None,
                })
                .collect();
            spans.sort_unstable();
            assert!(spans.windows(2).all(|pair| pair[0].1 < pair[1].0), "overlapping writers: {spans:?}");
        }
    }

    /// Every long value belongs to a record or a lock, and the other way round.
    fn check_values(&self) {
        let mut announced = Vec::new();
        for (_, stored, bytes) in self.store.contents_of(Cf::Write) {
            let write = Write::decode(&bytes).unwrap();
            if write.write_type == WriteType::Put && write.short_value.is_none() {
                announced.push((split_ts(&stored).unwrap().0.to_vec(), write.start_ts));
            }
        }
        for (_, key, bytes) in self.store.contents_of(Cf::Lock) {
            let lock = Lock::decode(&bytes).unwrap();
            if lock.lock_type == LockType::Put && lock.short_value.is_none() {
                announced.push((key, lock.start_ts));
            }
        }
        let mut stored: Vec<_> = self
            .store
            .contents_of(Cf::Default)
            .iter()
            .map(|(_, key, _)| split_ts(key).map(|(key, ts)| (key.to_vec(), ts)).unwrap())
            .collect();
        announced.sort_unstable();
        stored.sort_unstable();
        assert_eq!(announced, stored);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_interleaving_is_snapshot_isolation(steps in proptest::collection::vec(step(), 1..160)) {
        let mut run = Run::default();
        for step in &steps {
            run.step(step);
            run.check_values();
        }
        run.finish();
        prop_assert!(run.compared > 0);
    }
}
