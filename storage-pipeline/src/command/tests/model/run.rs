//! The clients of the model, and what disturbs them. Hands messages to the store and the ends of runs to the checks.

use super::{KEYS, Step, TTL_MS};
use crate::{
    Error,
    command::{
        CheckTxnStatus, Cleanup, Command, Commit, Gc, Mutation, Prewrite, Rollback, ScanGcKeys, ScanLock,
        TxnHeartBeat, testing::*,
    },
    txn::timestamp::compose,
};

/// What the model knows of a transaction's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Open,
    RolledBack,
    Committed { commit_ts: u64 },
}

/// A transaction and its client.
#[derive(Debug)]
pub(super) struct Txn {
    pub(super) start_ts: u64,
    pub(super) batch: usize,
    pub(super) mutations: Vec<Mutation>,
    pub(super) prewritten: usize,
    /// Where it wants to commit, or has.
    pub(super) commit_ts: Option<u64>,
    pub(super) fate: Fate,
    /// Its client has nothing more to do, or has given up.
    pub(super) is_over: bool,
}

impl Txn {
    pub(super) fn primary(&self) -> Vec<u8> {
        self.mutations[0].key().to_vec()
    }

    /// The one place where a fate is decided, and found to agree with what was decided before.
    pub(super) fn decide(&mut self, fate: Fate) {
        assert!(self.fate == Fate::Open || self.fate == fate, "{self:?} is now told {fate:?}");
        self.fate = fate;
    }
}

#[derive(Default)]
pub(super) struct Run {
    pub(super) store: Store,
    pub(super) txns: Vec<Txn>,
    pub(super) sent: Vec<Command>,
    pub(super) ms: u64,
    pub(super) count: u64,
    pub(super) safe_point: u64,
    /// How often reads were compared, and transactions committed: a run that does nothing proves nothing.
    pub(super) compared: usize,
}

impl Run {
    pub(super) fn now(&mut self) -> u64 {
        self.count += 1;
        compose(1000 + self.ms, self.count)
    }

    pub(super) fn step(&mut self, step: &Step) {
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

    pub(super) fn begin(&mut self, kinds: &[u8; 4], batch: usize) {
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

    pub(super) fn advance(&mut self, at: usize) {
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

    pub(super) fn disturb(&mut self, step: &Step, at: usize) {
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

    pub(super) fn gc(&mut self, ago: u64) {
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
}
