//! Lists keys that have versions which nobody can read any more, page by page. Hands `Gc` its keys.

use super::{
    GcKeys, Processed, Request, Response,
    execute::{Execute, size_of},
    validate,
};
use crate::{
    config::Config,
    engine::{Cf, Snapshot},
    error::{Error, InvalidCommand},
    txn::{
        Write,
        gc::{Fate, GcFilter},
        keys::{self, split_ts},
        scanner::encoded_range,
    },
};

/// Looks for keys in `start_key..end_key` from which [`Gc`](super::Gc) would remove something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanGcKeys {
    /// The safe point that is to hold.
    pub safe_point: u64,
    /// The first key. Empty for no bound.
    pub start_key: Vec<u8>,
    /// The first key behind the range. Empty for no bound.
    pub end_key: Vec<u8>,
    /// Write records to look at before the page ends, with the key at which it is reached.
    pub limit: usize,
}

impl Request for ScanGcKeys {
    type Output = GcKeys;

    fn output(response: Response) -> Option<GcKeys> {
        match response {
            Response::GcKeys(keys) => Some(keys),
            _ => None,
        }
    }
}

impl Execute for ScanGcKeys {
    const IS_READ: bool = true;

    fn validate(&self, config: &Config) -> Result<(), InvalidCommand> {
        validate::timestamp("safe_point", self.safe_point)?;
        validate::bound("start_key", &self.start_key, config)?;
        validate::bound("end_key", &self.end_key, config)?;
        validate::limit("limit", self.limit)
    }

    fn key_range(&self) -> Option<(&[u8], &[u8])> {
        Some((&self.start_key, &self.end_key))
    }

    fn size_bytes(&self) -> usize {
        size_of([self.start_key.as_slice(), &self.end_key])
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error> {
        let page = match encoded_range(&self.start_key, &self.end_key) {
            Some((lower, upper)) => self.page(snapshot, &lower, &upper)?,
            None => GcKeys::default(),
        };
        Ok(Processed::unchanged(Response::GcKeys(page)))
    }
}

impl ScanGcKeys {
    fn page(&self, snapshot: &dyn Snapshot, lower: &[u8], upper: &[u8]) -> Result<GcKeys, Error> {
        let mut page = GcKeys::default();
        let mut cursor = snapshot.cursor(Cf::Write, lower, upper);
        let mut key = Vec::new();
        let mut filter = GcFilter::new(self.safe_point);
        let mut is_listed = false;
        let mut looked_at = 0;
        cursor.seek_to_first()?;
        while let Some((stored, bytes)) = cursor.entry() {
            let (user_key, commit_ts) = split_ts(stored)?;
            if user_key != key {
                if looked_at >= self.limit {
                    page.next_start_key = Some(keys::decode(user_key)?);
                    break;
                }
                key = user_key.to_vec();
                filter = GcFilter::new(self.safe_point);
                is_listed = false;
            }
            if filter.fate(commit_ts, &Write::decode(bytes)?) != Fate::Keep && !is_listed {
                page.keys.push(keys::decode(user_key)?);
                is_listed = true;
            }
            looked_at += 1;
            cursor.next()?;
        }
        Ok(page)
    }
}
