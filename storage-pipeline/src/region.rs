//! The regions of a store: which keys belong to which, and which of them a command is for. Pure; hands on ids of regions.

use crate::{command::Command, error::Error};

/// Id of the first region, which is the only one of a store that is not split. Timestamps are replicated there.
pub const FIRST_REGION: u64 = 1;

/// A range of keys that a raft group of its own replicates, raw and transactional ones alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its id, counted from [`FIRST_REGION`] in the order of keys.
    pub id: u64,
    /// Its first key; empty where there is no bound.
    pub start_key: Vec<u8>,
    /// The key behind its last one; empty where there is no bound.
    pub end_key: Vec<u8>,
}

impl Region {
    /// Whether a key, as the user gave it, belongs to it.
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        self.start_key.as_slice() <= key && (self.end_key.is_empty() || key < self.end_key.as_slice())
    }

    /// Whether all of a range does; an empty end means no bound.
    fn has_range(&self, start: &[u8], end: &[u8]) -> bool {
        let is_empty = !end.is_empty() && end <= start;
        let ends = self.end_key.is_empty() || (!end.is_empty() && end <= self.end_key.as_slice());
        self.has(start) && (ends || is_empty)
    }

    fn refuse(&self, key: &[u8]) -> Error {
        Error::KeyNotInRegion {
            key: key.to_vec(),
            region: self.id,
            start_key: self.start_key.clone(),
            end_key: self.end_key.clone(),
        }
    }
}

/// All regions of a store, in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions(Box<[Region]>);

impl Regions {
    /// The regions between these keys, which ascend.
    ///
    /// ```
    /// use storage_pipeline::region::Regions;
    /// let regions = Regions::split_at(&[b"h".to_vec(), b"q".to_vec()]);
    /// assert_eq!(regions.of_key(b"apple").id, 1);
    /// assert_eq!(regions.of_key(b"h").id, 2);
    /// assert_eq!(regions.of_key(b"zebra").id, 3);
    /// ```
    #[must_use]
    pub fn split_at(split_keys: &[Vec<u8>]) -> Self {
        let bounds: Vec<_> = [Vec::new()].into_iter().chain(split_keys.iter().cloned()).collect();
        let ends = split_keys.iter().cloned().chain([Vec::new()]);
        let regions = (FIRST_REGION..).zip(bounds).zip(ends);
        Self(regions.map(|((id, start_key), end_key)| Region { id, start_key, end_key }).collect())
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Region] {
        &self.0
    }

    /// The region that a key belongs to, as the user gave it.
    #[must_use]
    pub fn of_key(&self, key: &[u8]) -> &Region {
        let behind = self.0.partition_point(|region| region.start_key.as_slice() <= key);
        &self.0[behind - 1]
    }

    /// Id of the region that a command is for. One without keys is for the first.
    ///
    /// # Errors
    /// [`Error::KeyNotInRegion`] for one whose keys belong to several regions.
    pub fn of_command(&self, command: &Command) -> Result<u64, Error> {
        if self.0.len() == 1 {
            return Ok(FIRST_REGION);
        }
        let (mut region, mut refused) = (None, None);
        command.for_each_key(&mut |key| {
            let own: &Region = region.get_or_insert_with(|| self.of_key(key));
            if !own.has(key) && refused.is_none() {
                refused = Some(own.refuse(key));
            }
        });
        if let Some((start, end)) = command.key_range() {
            let own = self.of_key(start);
            if !own.has_range(start, end) {
                refused = Some(own.refuse(end));
            }
            region = Some(own);
        }
        match refused {
            Some(error) => Err(error),
            None => Ok(region.map_or(FIRST_REGION, |region| region.id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{AllocateTimestamps, Commit, Gc, RawGet, RawScan};

    fn three() -> Regions {
        Regions::split_at(&[b"h".to_vec(), b"q".to_vec()])
    }

    #[test]
    fn every_key_belongs_to_the_one_region_whose_range_has_it() {
        let regions = three();
        for key in [&b""[..], b"a", b"gzzz", b"h", b"h\0", b"p\xff", b"q", b"\xff\xff"] {
            let owners: Vec<_> = regions.all().iter().filter(|region| region.has(key)).collect();
            assert_eq!(owners, [regions.of_key(key)], "{key:?}");
        }
        assert_eq!(Regions::split_at(&[]).of_key(b"any").id, FIRST_REGION);
    }

    #[test]
    fn a_command_is_for_the_region_of_all_its_keys_or_refused() {
        let regions = three();
        let commit = |keys: &[&[u8]]| {
            let keys = keys.iter().map(|key| key.to_vec()).collect();
            regions.of_command(&Commit { keys, start_ts: 1, commit_ts: 2 }.into())
        };
        assert_eq!(commit(&[b"i", b"k"]), Ok(2));
        let refused = commit(&[b"i", b"r", b"a"]).unwrap_err();
        assert!(matches!(&refused, Error::KeyNotInRegion { key, region: 2, .. } if key == b"r"), "{refused}");
        assert_eq!(regions.of_command(&RawGet { key: b"z".to_vec() }.into()), Ok(3));
        assert_eq!(regions.of_command(&AllocateTimestamps { at_least: 1, window: 1 }.into()), Ok(1));
        assert_eq!(regions.of_command(&Gc { safe_point: 1, keys: Vec::new() }.into()), Ok(1));
    }

    #[test]
    fn a_range_is_for_the_region_that_has_all_of_it() {
        let regions = three();
        let scan = |start: &[u8], end: &[u8]| {
            let (start_key, end_key) = (start.to_vec(), end.to_vec());
            regions
                .of_command(&RawScan { start_key, end_key, limit: 1, reverse: false, key_only: false }.into())
                .ok()
        };
        assert_eq!(scan(b"", b"h"), Some(1));
        assert_eq!(scan(b"h", b"q"), Some(2));
        assert_eq!(scan(b"i", b"j"), Some(2));
        assert_eq!(scan(b"r", b""), Some(3));
        assert_eq!(scan(b"j", b"i"), Some(2), "an empty range");
        for (start, end) in [(&b""[..], &b""[..]), (b"a", b"h\0"), (b"h", b""), (b"h", b"z")] {
            assert_eq!(scan(start, end), None, "{start:?} {end:?}");
        }
    }
}
