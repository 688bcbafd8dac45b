//! What the clients of a round do, and beside what: the workloads and the conditions.

use std::{fmt, sync::mpsc};

use serde::{Deserialize, Serialize};
use storage_pipeline::{
    Storage,
    command::{RawPut, RawScan},
};

use crate::{
    round::Failure,
    rows::{RowId, scramble},
};

/// What each client does, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Workload {
    /// Inserts a row and its index entry through two-phase commit; no two clients meet.
    Inserts,
    /// Sets the one raw key that all clients set.
    HotKey,
    /// Sets one of 10,000 raw keys, some far more often than others (Zipf, exponent 0.99).
    Zipfian,
    /// Sets raw keys to 100 bytes, and every tenth time to 16 KiB.
    MixedSizes,
    /// Reads or sets one of 10,000 raw keys, each half of the time.
    HalfReads,
}

/// What else goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Condition {
    /// Nothing.
    Idle,
    /// The worker pool always has scans to run.
    BusyWorkers,
    /// Each caller's callback keeps its thread for 50 us.
    SlowCallbacks,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Inserts => "uncontended inserts",
            Self::HotKey => "updates of one hot key",
            Self::Zipfian => "Zipfian updates",
            Self::MixedSizes => "large and small values",
            Self::HalfReads => "half reads, half updates",
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Idle => "nothing beside",
            Self::BusyWorkers => "workers saturated",
            Self::SlowCallbacks => "slow callbacks",
        })
    }
}

const KEYS: u64 = 10_000;
const VALUE_BYTES: usize = 150;
const LARGE_BYTES: usize = 16 << 10;
const SCANNED_KEYS: u64 = 512;

/// One client at work.
pub struct Client<'a> {
    storage: &'a Storage,
    workload: Workload,
    zipf: &'a Zipf,
    number: u32,
    done: u32,
    random: u64,
}

impl<'a> Client<'a> {
    /// A client of its own number.
    #[must_use]
    pub fn new(storage: &'a Storage, workload: Workload, zipf: &'a Zipf, number: u32) -> Self {
        Self { storage, workload, zipf, number, done: 0, random: u64::from(number) << 32 }
    }

    /// How many operations were acknowledged.
    #[must_use]
    pub fn done(&self) -> u32 {
        self.done
    }

    /// Does one operation and waits for its acknowledgement.
    ///
    /// # Errors
    /// The store's refusal. None of the workloads expects one.
    pub fn step(&mut self) -> Result<(), Failure> {
        match self.workload {
            Workload::Inserts => insert(self.storage, RowId { client: self.number, number: self.done })?,
            Workload::HotKey => self.put(b"hot", VALUE_BYTES)?,
            Workload::Zipfian => {
                let key = self.zipf.pick(self.next());
                self.put(&key.to_be_bytes(), VALUE_BYTES)?;
            }
            Workload::MixedSizes => {
                let random = self.next();
                let bytes = if random.is_multiple_of(10) { LARGE_BYTES } else { 100 };
                self.put(&(scramble(random) % KEYS).to_be_bytes(), bytes)?;
            }
            Workload::HalfReads => {
                let random = self.next();
                let key = (scramble(random) % KEYS).to_be_bytes();
                if random.is_multiple_of(2) {
                    self.storage.raw_get(&key).into_result()?;
                } else {
                    self.put(&key, VALUE_BYTES)?;
                }
            }
        }
        self.done += 1;
        Ok(())
    }

    fn put(&self, key: &[u8], bytes: usize) -> Result<(), Failure> {
        let value = vec![7; bytes];
        Ok(self.storage.execute(RawPut { key: key.to_vec(), value }).into_result()?)
    }

    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scramble(self.random)
    }
}

fn insert(storage: &Storage, row: RowId) -> Result<(), Failure> {
    let row = row.row();
    let mut transaction = storage.begin().into_result()?;
    transaction.insert(&row.record_key, &row.record);
    transaction.insert(&row.index_key, &row.index);
    transaction.commit()?;
    Ok(())
}

/// Makes what [`scan_once`] reads.
///
/// # Errors
/// The store's refusal.
pub fn prepare_scans(storage: &Storage) -> Result<(), Failure> {
    let (sender, answers) = mpsc::channel();
    for key in 0..SCANNED_KEYS {
        let sender = sender.clone();
        let put = RawPut { key: scanned(key), value: vec![1; 64] };
        // Whoever sent it waits below for every answer.
        storage.submit(put, move |outcome| drop(sender.send(outcome)));
    }
    drop(sender);
    answers.into_iter().try_for_each(|outcome| outcome.into_result().map_err(Failure::from))
}

/// One scan, some hundreds of microseconds of work for a worker.
///
/// # Errors
/// The store's refusal.
pub fn scan_once(storage: &Storage) -> Result<(), Failure> {
    let scan = RawScan {
        start_key: scanned(0),
        end_key: Vec::new(),
        limit: SCANNED_KEYS as usize,
        reverse: false,
        key_only: false,
    };
    storage.execute(scan).into_result()?;
    Ok(())
}

fn scanned(key: u64) -> Vec<u8> {
    [b"scanned".as_slice(), &key.to_be_bytes()].concat()
}

/// Picks keys as people pick words: the n-th most popular with a share of about one n-th of the first.
#[derive(Debug)]
pub struct Zipf(Vec<f64>);

impl Default for Zipf {
    fn default() -> Self {
        let mut sum = 0.0;
        let mut shares: Vec<_> = (1..=KEYS)
            .map(|rank| {
                sum += (rank as f64).powf(-0.99);
                sum
            })
            .collect();
        shares.iter_mut().for_each(|share| *share /= sum);
        Self(shares)
    }
}

impl Zipf {
    fn pick(&self, random: u64) -> u64 {
        let at = random as f64 / u64::MAX as f64;
        // Neighbours in popularity are no neighbours in the key space.
        scramble(self.0.partition_point(|share| *share < at) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_most_popular_key_is_picked_about_twice_as_often_as_the_next() {
        let zipf = Zipf::default();
        let mut counts: HashMap<u64, u32> = HashMap::new();
        for n in 0..200_000 {
            *counts.entry(zipf.pick(scramble(n + 1))).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((1.8..2.2).contains(&ratio), "{ratio}");
        assert!(counts.len() > 5000 && counts[0] < 30_000, "{} keys, {} of one", counts.len(), counts[0]);
    }
}
