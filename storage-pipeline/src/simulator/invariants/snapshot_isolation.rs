//! Snapshot isolation of transactions, by their timestamps: each read is the newest commit at or below it, no two that
//! overlap write one key, the money is neither more nor less, and what a client was told of a commit is so.

use std::collections::BTreeMap;

use crate::{
    engine::{Cf, Snapshot},
    simulator::bank::{ACCOUNTS, OPENING, account},
    txn::{Key, Write, WriteType, keys::split_ts},
};

/// What a client knows of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulator) enum Fate {
    Committed { commit_ts: u64 },
    Aborted,
    Unknown,
}

/// Accounts that were read at one timestamp.
#[derive(Debug)]
pub(in crate::simulator) struct Read {
    pub(in crate::simulator) read_ts: u64,
    pub(in crate::simulator) balances: Vec<(u32, i64)>,
}

/// What all clients did to all accounts.
#[derive(Default)]
pub(in crate::simulator) struct Ledger {
    pub(in crate::simulator) reads: Vec<Read>,
    fates: BTreeMap<u64, Fate>,
}

/// A version of an account, as the store has it.
#[derive(Debug)]
struct Version {
    commit_ts: u64,
    start_ts: u64,
    balance: i64,
}

impl Ledger {
    /// A transaction begins to write.
    pub(in crate::simulator) fn begin(&mut self, start_ts: u64) {
        self.fates.insert(start_ts, Fate::Unknown);
    }

    pub(in crate::simulator) fn decide(&mut self, start_ts: u64, fate: Fate) {
        self.fates.insert(start_ts, fate);
    }

    /// How many transactions are in it.
    pub(in crate::simulator) fn len(&self) -> usize {
        self.fates.len()
    }

    /// Compares what clients know with the versions that a replica has in the end.
    ///
    /// # Errors
    /// What contradicts it.
    pub(in crate::simulator) fn check(&self, data: &dyn Snapshot) -> Result<(), String> {
        let mut accounts = Vec::new();
        for number in 0..ACCOUNTS {
            accounts.push(versions(data, number)?);
        }
        for read in &self.reads {
            for (number, balance) in &read.balances {
                let newest =
                    accounts[*number as usize].iter().rfind(|version| version.commit_ts <= read.read_ts);
                let expected = newest.map_or(OPENING, |version| version.balance);
                if *balance != expected {
                    return Err(format!("{read:?}: account {number} had {expected} then, by {newest:?}"));
                }
            }
            let sum: i64 = read.balances.iter().map(|(_, balance)| balance).sum();
            if read.balances.len() == ACCOUNTS as usize && sum != OPENING * i64::from(ACCOUNTS) {
                return Err(format!("{read:?} adds up to {sum}"));
            }
        }
        for (number, versions) in accounts.iter().enumerate() {
            for pair in versions.windows(2) {
                if pair[1].start_ts < pair[0].commit_ts {
                    return Err(format!("account {number} was written by two that overlap: {pair:?}"));
                }
            }
        }
        for (start_ts, fate) in &self.fates {
            let found: Vec<_> =
                accounts.iter().flatten().filter(|version| version.start_ts == *start_ts).collect();
            let is_so = match fate {
                // Its second account may still be locked; whoever reads it resolves that.
                Fate::Committed { commit_ts } => {
                    !found.is_empty() && found.iter().all(|version| version.commit_ts == *commit_ts)
                }
                Fate::Aborted => found.is_empty(),
                Fate::Unknown => true,
            };
            if !is_so {
                return Err(format!("transaction {start_ts} is {fate:?}, and the store has {found:?}"));
            }
        }
        Ok(())
    }
}

/// The versions of an account, oldest first.
fn versions(data: &dyn Snapshot, number: u32) -> Result<Vec<Version>, String> {
    let key = Key::from_raw(&account(number));
    let mut cursor = data.cursor(Cf::Write, &key.append_ts(u64::MAX), &key.after_versions());
    let failed = |error: &dyn std::fmt::Display| format!("account {number}: {error}");
    cursor.seek_to_first().map_err(|error| failed(&error))?;
    let mut versions = Vec::new();
    while let Some((stored, record)) = cursor.entry() {
        let (_, commit_ts) = split_ts(stored).map_err(|error| failed(&error))?;
        let write = Write::decode(record).map_err(|error| failed(&error))?;
        if write.write_type == WriteType::Put {
            let value = write.short_value.unwrap_or_default();
            let balance = String::from_utf8_lossy(&value).parse().map_err(|error| failed(&error))?;
            versions.push(Version { commit_ts, start_ts: write.start_ts, balance });
        }
        cursor.next().map_err(|error| failed(&error))?;
    }
    versions.reverse();
    Ok(versions)
}
