//! What is known of the log without reading it: the newest entries, and the term and size of every entry. Pure.

use std::collections::VecDeque;

use raft::{
    eraftpb::{Entry, EntryType},
    util::entry_approximate_size,
};

use super::Position;

/// Most entries and bytes that are kept. Apply and the followers that keep up read no further back.
const MOST_ENTRIES: usize = 4096;
const MOST_BYTES: usize = 16 << 20;

/// The newest entries, in order and without a gap.
#[derive(Debug, Default)]
pub(super) struct Recent {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Recent {
    /// Takes entries that replace everything at and after the first one's index.
    pub(super) fn append(&mut self, new: Vec<Entry>) {
        let Some(first) = new.first().map(|entry| entry.index) else { return };
        while self.entries.back().is_some_and(|entry| entry.index >= first) {
            let removed = self.entries.pop_back();
            self.bytes -= removed.as_ref().map_or(0, entry_approximate_size);
        }
        if self.entries.back().is_some_and(|entry| entry.index + 1 != first) {
            self.entries.clear();
            self.bytes = 0;
        }
        self.bytes += new.iter().map(entry_approximate_size).sum::<usize>();
        self.entries.extend(new);
        while self.entries.len() > MOST_ENTRIES || self.bytes > MOST_BYTES {
            self.pop_front();
        }
    }

    /// Removes entries up to `index`.
    pub(super) fn forget(&mut self, index: u64) {
        while self.entries.front().is_some_and(|entry| entry.index <= index) {
            self.pop_front();
        }
    }

    /// The entries from `low` up to `high`, as many as fit into `max_bytes`, at least one; none where `low` lies
    /// further back than what is kept.
    pub(super) fn entries(&self, low: u64, high: u64, max_bytes: u64) -> Option<Vec<Entry>> {
        if low >= high {
            return Some(Vec::new());
        }
        let offset = usize::try_from(low.checked_sub(self.entries.front()?.index)?).ok()?;
        let count = usize::try_from(high - low).ok()?;
        let mut room = Room::new(max_bytes);
        let range = self.entries.range(offset.min(self.entries.len())..);
        Some(range.take(count).take_while(|entry| room.take(entry)).cloned().collect())
    }

    fn pop_front(&mut self) {
        let removed = self.entries.pop_front();
        self.bytes -= removed.as_ref().map_or(0, entry_approximate_size);
    }
}

/// Counts the bytes of entries that are read. The first one is always let through: a limit below its size would stop
/// raft for ever.
pub(in crate::raftstore) struct Room {
    left: u64,
    first: bool,
}

impl Room {
    pub(in crate::raftstore) const fn new(bytes: u64) -> Self {
        Self { left: bytes, first: true }
    }

    /// Whether there is room for one more entry.
    pub(in crate::raftstore) fn take(&mut self, entry: &Entry) -> bool {
        let size = entry_approximate_size(entry) as u64;
        let fits = self.first || size <= self.left;
        self.left = self.left.saturating_sub(size);
        self.first = false;
        fits
    }
}

/// All that is known of a log.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) terms: Terms,
    pub(super) recent: Recent,
    pub(super) sizes: Sizes,
    /// The last entry that changes the members, if those that are known have one; else 0.
    pub(super) change: u64,
}

/// Whether an entry does not change the members.
pub(super) fn is_normal(entry: &Entry) -> bool {
    entry.get_entry_type() == EntryType::EntryNormal
}

impl Known {
    /// What is known of an empty log after this place.
    pub(super) fn after(truncated: Position) -> Self {
        let (terms, sizes) = (Terms::after(truncated), Sizes::after(truncated.index));
        Self { terms, recent: Recent::default(), sizes, change: 0 }
    }

    /// Takes entries that replace everything at and after the first one's index.
    pub(super) fn append(&mut self, new: Vec<Entry>) {
        if new.first().is_some_and(|first| first.index <= self.change) {
            // One before it was committed when it was proposed.
            self.change = 0;
        }
        let change = new.iter().rev().find(|entry| !is_normal(entry));
        self.change = change.map_or(self.change, |entry| entry.index);
        self.terms.append(&new);
        self.sizes.append(&new);
        self.recent.append(new);
    }

    /// Removes what is known of entries up to `index`, but for its term.
    pub(super) fn forget(&mut self, index: u64) {
        self.terms.forget(index);
        self.sizes.forget(index);
        self.recent.forget(index);
    }
}

/// The sizes of all entries, as they count against the bound of the log.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// One for each entry, the oldest first.
    entries: VecDeque<u32>,
    last_index: u64,
}

impl Sizes {
    /// The sizes of an empty log after this index.
    pub(super) fn after(index: u64) -> Self {
        Self { entries: VecDeque::new(), last_index: index }
    }

    /// Takes entries that replace everything at and after the first one's index.
    pub(super) fn append(&mut self, new: &[Entry]) {
        let Some(first) = new.first() else { return };
        let replaced = (self.last_index + 1).saturating_sub(first.index);
        let kept = self.entries.len().saturating_sub(usize::try_from(replaced).unwrap_or(usize::MAX));
        self.entries.truncate(kept);
        let size = |entry| u32::try_from(entry_approximate_size(entry)).unwrap_or(u32::MAX);
        self.entries.extend(new.iter().map(size));
        self.last_index = first.index - 1 + new.len() as u64;
    }

    /// Removes entries up to `index`.
    pub(super) fn forget(&mut self, index: u64) {
        let kept = usize::try_from(self.last_index.saturating_sub(index)).unwrap_or(usize::MAX);
        self.entries.drain(..self.entries.len().saturating_sub(kept));
    }

    /// The least index behind which no more than `most_bytes` of entries lie.
    pub(super) fn within(&self, most_bytes: u64) -> u64 {
        let mut left = most_bytes;
        let fit = self.entries.iter().rev().take_while(|size| {
            let rest = left.checked_sub(u64::from(**size));
            left = rest.unwrap_or(0);
            rest.is_some()
        });
        self.last_index - fit.count() as u64
    }
}

/// The terms of all entries. They change with a leader, so there are few runs of equal terms.
#[derive(Debug)]
pub(super) struct Terms {
    /// The first place of each run, in order. The first of all is where the log is truncated, or before it.
    runs: VecDeque<Position>,
}

impl Terms {
    /// The terms of an empty log after this place.
    pub(super) fn after(truncated: Position) -> Self {
        Self { runs: VecDeque::from([truncated]) }
    }

    /// Takes entries that replace everything at and after the first one's index.
    pub(super) fn append(&mut self, new: &[Entry]) {
        let Some(first) = new.first() else { return };
        while self.runs.len() > 1 && self.runs.back().is_some_and(|run| run.index >= first.index) {
            self.runs.pop_back();
        }
        for entry in new {
            if self.runs.back().is_none_or(|run| run.term != entry.term) {
                self.runs.push_back(Position { index: entry.index, term: entry.term });
            }
        }
    }

    /// Removes runs that end before `index`.
    pub(super) fn forget(&mut self, index: u64) {
        while self.runs.get(1).is_some_and(|run| run.index <= index) {
            self.runs.pop_front();
        }
    }

    /// The term of an entry that is in the log, or of the place where it is truncated.
    pub(super) fn of(&self, index: u64) -> u64 {
        let newest = self.runs.iter().rev().find(|run| run.index <= index);
        newest.map_or(0, |run| run.term)
    }
}
