//! Whose entries are on their way: from the places of a log that a moment names to the commands that it concerns. Pure;
//! hands on their numbers.

use std::collections::BTreeMap;

use super::Moment;

/// The places of what was proposed and is not applied yet. A command whose place another one takes is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// By region and index.
    places: BTreeMap<(u64, u64), Entry>,
}

#[derive(Debug)]
struct Entry {
    cid: u64,
    is_committed: bool,
}

impl Entries {
    /// Passes a moment. Yields the commands whose entries it concerns and that do not know it by their number: those that are
    /// committed or applied now. A place may since have been another entry's, so some of them may be settled long ago.
    pub(crate) fn pass(&mut self, moment: Moment) -> Vec<u64> {
        match moment {
            Moment::Proposed { cid, region, index, .. } => {
                self.places.insert((region, index), Entry { cid, is_committed: false });
                Vec::new()
            }
            Moment::Committed { region, index } => {
                let through = self.places.range_mut((region, 0)..=(region, index));
                let new = through.filter(|(_, entry)| !entry.is_committed);
                new.map(|(_, entry)| {
                    entry.is_committed = true;
                    entry.cid
                })
                .collect()
            }
            Moment::Applied { region, index } => {
                let through: Vec<_> =
                    self.places.range((region, 0)..=(region, index)).map(|(place, _)| *place).collect();
                through.iter().filter_map(|place| self.places.remove(place)).map(|entry| entry.cid).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(cid: u64, region: u64, index: u64) -> Moment {
        Moment::Proposed { cid, region, index, term: 1 }
    }

    #[test]
    fn a_command_is_committed_once_and_applied_once_with_those_before_it_in_its_own_region() {
        let mut entries = Entries::default();
        for moment in [proposed(1, 1, 5), proposed(2, 1, 6), proposed(3, 2, 5), proposed(4, 1, 9)] {
            assert!(entries.pass(moment).is_empty());
        }
        assert_eq!(entries.pass(Moment::Committed { region: 1, index: 5 }), [1]);
        assert_eq!(entries.pass(Moment::Committed { region: 1, index: 7 }), [2]);
        assert_eq!(entries.pass(Moment::Applied { region: 1, index: 7 }), [1, 2]);
        assert_eq!(entries.pass(Moment::Applied { region: 2, index: 5 }), [3]);
        assert!(entries.pass(Moment::Applied { region: 1, index: 8 }).is_empty());
        assert_eq!(entries.pass(Moment::Committed { region: 1, index: 9 }), [4]);
    }

    #[test]
    fn a_command_whose_place_another_one_took_is_forgotten() {
        let mut entries = Entries::default();
        entries.pass(proposed(1, 1, 5));
        entries.pass(proposed(2, 1, 5));
        assert_eq!(entries.pass(Moment::Committed { region: 1, index: 5 }), [2]);
        assert_eq!(entries.pass(Moment::Applied { region: 1, index: 5 }), [2]);
        assert!(entries.places.is_empty());
    }
}
