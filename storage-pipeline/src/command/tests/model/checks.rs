//! What is compared with the model: every read, and the end of each run.

use std::collections::BTreeMap;

use super::{
    KEYS, TTL_MS,
    run::{Fate, Run, Txn},
};
use crate::{
    Error,
    command::{Mutation, Scan, ScanLock},
    engine::Cf,
    txn::{Lock, LockType, Write, WriteType, keys::split_ts},
};

impl Run {
    pub(super) fn read(&mut self, ago: u64, reverse: bool) {
        let read_ts = self.now().saturating_sub(ago << 16).max(1);
        self.read_all(read_ts, reverse);
    }

    pub(super) fn read_all(&mut self, read_ts: u64, reverse: bool) {
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
    pub(super) fn expected(&self, key: &str, read_ts: u64) -> Option<Vec<u8>> {
        let changes = self.writers(key).filter(|(commit_ts, mutation)| {
            *commit_ts <= read_ts && !matches!(mutation, Mutation::Lock { .. })
        });
        let (_, newest) = changes.max_by_key(|(commit_ts, _)| *commit_ts)?;
        newest.value().map(<[u8]>::to_vec)
    }

    pub(super) fn writers<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (u64, &'a Mutation)> {
        self.txns.iter().filter_map(move |txn| {
            let Fate::Committed { commit_ts } = txn.fate else { return None };
            Some((commit_ts, txn.mutations.iter().find(|mutation| mutation.key() == key.as_bytes())?))
        })
    }

    /// Lets all locks expire, resolves them and reads at every timestamp that matters.
    pub(super) fn finish(&mut self) {
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

    pub(super) fn check_writers(&self) {
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
    pub(super) fn check_values(&self) {
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
