//! The regions of a store: which keys belong to which, and which of them a command is for. Pure; hands on ids of regions.

use std::fmt;

use crate::{
    command::Command,
    error::{Error, InvalidCommand},
};

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

/// What has become of a region since it began. Both numbers begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionEpoch {
    /// Counts the changes of its members. Entering and leaving a joint membership are two.
    pub conf_ver: u64,
    /// Counts the changes of its range. There are none while a store runs, so it stays.
    pub version: u64,
}

impl Default for RegionEpoch {
    /// That of a region that has just begun.
    fn default() -> Self {
        Self { conf_ver: 1, version: 1 }
    }
}

impl fmt::Display for RegionEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.conf_ver, self.version)
    }
}

/// A region and its epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentRegion {
    /// Its id and its range.
    pub region: Region,
    /// Its epoch, as far as changes are applied here.
    pub epoch: RegionEpoch,
}

impl CurrentRegion {
    /// Refuses a command that names another epoch than this one. One that names none is for whatever the region has become.
    #[cfg(feature = "store")]
    pub(crate) fn check(&self, named: Option<RegionEpoch>) -> Result<(), Error> {
        match named {
            Some(epoch) if epoch != self.epoch => Err(Error::EpochNotMatch(Box::new(self.clone()))),
            _ => Ok(()),
        }
    }
}

/// The region that a command names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionContext {
    /// Its id.
    pub id: u64,
    /// The epoch that the caller knows of it. The command is executed in that one or not at all.
    pub epoch: Option<RegionEpoch>,
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

    /// The region with this id, if there is one.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Region> {
        self.0.get(usize::try_from(id.checked_sub(FIRST_REGION)?).ok()?)
    }

    /// Id of the region that a command is for: the one that it names, else that of its keys.
    ///
    /// # Errors
    /// [`Error::KeyNotInRegion`] for one whose keys belong to several regions, or not to the one that it names;
    /// [`Error::RegionNotFound`], and [`Error::RegionNotNamed`] for one that has no keys and could be for any.
    pub fn of_command(&self, command: &Command, named: Option<RegionContext>) -> Result<u64, Error> {
        let named = named.map(|named| self.get(named.id).ok_or(Error::RegionNotFound { region: named.id }));
        let named = named.transpose()?;
        if matches!(command, Command::AllocateTimestamps(_)) {
            return self.of_timestamps(named);
        }
        if self.0.len() == 1 {
            return Ok(FIRST_REGION);
        }
        let (mut region, mut refused) = (named, None);
        command.for_each_key(&mut |key| {
            let own: &Region = region.get_or_insert_with(|| self.of_key(key));
            if !own.has(key) && refused.is_none() {
                refused = Some(own.refuse(key));
            }
        });
        if let Some((start, end)) = command.key_range() {
            let own = named.unwrap_or_else(|| self.of_key(start));
            if !own.has_range(start, end) {
                refused = Some(own.refuse(end));
            }
            region = Some(own);
        }
        match refused {
            Some(error) => Err(error),
            None => region.map(|region| region.id).ok_or(Error::RegionNotNamed),
        }
    }

    fn of_timestamps(&self, named: Option<&Region>) -> Result<u64, Error> {
        match named {
            Some(Region { id, .. }) if *id != FIRST_REGION => {
                Err(Error::InvalidCommand(InvalidCommand::OutOfRange {
                    field: "region".into(),
                    value: *id,
                    range: "the first region, which has the timestamps of all".into(),
                }))
            }
            _ => Ok(FIRST_REGION),
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
            regions.of_command(&Commit { keys, start_ts: 1, commit_ts: 2 }.into(), None)
        };
        assert_eq!(commit(&[b"i", b"k"]), Ok(2));
        let refused = commit(&[b"i", b"r", b"a"]).unwrap_err();
        assert!(matches!(&refused, Error::KeyNotInRegion { key, region: 2, .. } if key == b"r"), "{refused}");
        assert_eq!(regions.of_command(&RawGet { key: b"z".to_vec() }.into(), None), Ok(3));
        assert_eq!(regions.of_command(&AllocateTimestamps { at_least: 1, window: 1 }.into(), None), Ok(1));
    }

    #[test]
    fn a_command_without_keys_names_its_region_and_one_with_keys_may() {
        let regions = three();
        let named =
            |command: Command, id| regions.of_command(&command, Some(RegionContext { id, epoch: None }));
        let gc = || Command::from(Gc { safe_point: 1, keys: Vec::new() });
        assert_eq!(regions.of_command(&gc(), None), Err(Error::RegionNotNamed));
        assert_eq!(Regions::split_at(&[]).of_command(&gc(), None), Ok(FIRST_REGION));
        for id in 1..=3 {
            assert_eq!(named(gc(), id), Ok(id));
        }
        for region in [0, 4, u64::MAX] {
            assert_eq!(named(gc(), region), Err(Error::RegionNotFound { region }));
        }
        let get = || Command::from(RawGet { key: b"i".to_vec() });
        assert_eq!(named(get(), 2), Ok(2));
        assert!(matches!(named(get(), 3), Err(Error::KeyNotInRegion { region: 3, .. })));
        let scan = |end: &[u8]| {
            let (start_key, end_key) = (b"h".to_vec(), end.to_vec());
            RawScan { start_key, end_key, limit: 1, reverse: false, key_only: false }.into()
        };
        assert_eq!(named(scan(b"q"), 2), Ok(2));
        assert!(matches!(named(scan(b"q"), 1), Err(Error::KeyNotInRegion { region: 1, .. })));
        let timestamps = || AllocateTimestamps { at_least: 1, window: 1 }.into();
        assert_eq!(named(timestamps(), 1), Ok(1));
        assert!(matches!(named(timestamps(), 2), Err(Error::InvalidCommand(_))));
    }

    #[test]
    fn a_range_is_for_the_region_that_has_all_of_it() {
        let regions = three();
        let scan = |start: &[u8], end: &[u8]| {
            let (start_key, end_key) = (start.to_vec(), end.to_vec());
            regions
                .of_command(
                    &RawScan { start_key, end_key, limit: 1, reverse: false, key_only: false }.into(),
                    None,
                )
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
