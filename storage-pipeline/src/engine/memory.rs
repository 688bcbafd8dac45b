//! An engine in memory: sorted maps that share their structure, so that a snapshot costs nothing. Hands simulators,
//! tests and benchmarks what RocksDB hands a store, without a disk.

use std::{fmt, ops::Bound, sync::Arc};

use imbl::OrdMap;
use parking_lot::RwLock;

use super::{Cf, Cursor, Engine, EngineError, Modify, Snapshot, WriteBatch};

/// Keys and values are shared between versions of the map, never copied.
type Map = OrdMap<Arc<[u8]>, Arc<[u8]>>;
type Maps = [Map; Cf::ALL.len()];

/// An engine in memory. Clones are handles to the same data, which lives as long as the last of them.
///
/// ```
/// use storage_pipeline::engine::{Cf, Engine, Modify, WriteBatch, memory::MemoryEngine};
/// let engine = MemoryEngine::default();
/// let before = engine.snapshot();
/// let mut batch = WriteBatch::default();
/// batch.push(Modify::Put(Cf::Raw, b"k".to_vec(), b"v".to_vec()));
/// engine.write(&batch)?;
/// assert_eq!(before.get(Cf::Raw, b"k")?, None);
/// assert_eq!(engine.snapshot().get(Cf::Raw, b"k")?, Some(b"v".to_vec()));
/// # Ok::<(), storage_pipeline::engine::EngineError>(())
/// ```
#[derive(Clone, Default)]
pub struct MemoryEngine {
    maps: Arc<RwLock<Maps>>,
}

impl MemoryEngine {
    /// An engine with the same data, which later writes to either do not reach in the other. It costs next to nothing.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { maps: Arc::new(RwLock::new(self.maps.read().clone())) }
    }
}

impl fmt::Debug for MemoryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let maps = self.maps.read();
        let mut sizes = f.debug_struct("MemoryEngine");
        for cf in Cf::ALL {
            sizes.field(cf.name(), &maps[cf as usize].len());
        }
        sizes.finish()
    }
}

impl Engine for MemoryEngine {
    fn write(&self, batch: &WriteBatch) -> Result<(), EngineError> {
        let mut maps = self.maps.write();
        for modify in batch.modifies() {
            match modify {
                Modify::Put(cf, key, value) => {
                    maps[*cf as usize].insert(key.as_slice().into(), value.as_slice().into());
                }
                Modify::Delete(cf, key) => {
                    maps[*cf as usize].remove(key.as_slice());
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(MemorySnapshot { maps: self.maps.read().clone() })
    }
}

struct MemorySnapshot {
    maps: Maps,
}

impl Snapshot for MemorySnapshot {
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(self.maps[cf as usize].get(key).map(|value| value.to_vec()))
    }

    fn cursor<'a>(&'a self, cf: Cf, lower: &[u8], upper: &[u8]) -> Box<dyn Cursor + 'a> {
        let (lower, upper) = (lower.to_vec(), upper.to_vec());
        Box::new(MemoryCursor { map: &self.maps[cf as usize], lower, upper, here: None })
    }
}

type Entry<'a> = (&'a Arc<[u8]>, &'a Arc<[u8]>);

struct MemoryCursor<'a> {
    map: &'a Map,
    lower: Vec<u8>,
    /// Empty for no bound.
    upper: Vec<u8>,
    here: Option<Entry<'a>>,
}

impl<'a> MemoryCursor<'a> {
    fn upper_bound(&self) -> Bound<&[u8]> {
        if self.upper.is_empty() { Bound::Unbounded } else { Bound::Excluded(&self.upper) }
    }

    /// The first entry behind `from` and within the bounds.
    fn first_from(&self, from: Bound<&[u8]>) -> Option<Entry<'a>> {
        let from = match from {
            Bound::Included(key) | Bound::Excluded(key) if key >= self.lower.as_slice() => from,
            _ => Bound::Included(self.lower.as_slice()),
        };
        let found = self.map.range::<_, [u8]>((from, Bound::Unbounded)).next()?;
        self.is_below_upper(found.0).then_some(found)
    }

    /// The last entry before `to` and within the bounds.
    fn last_to(&self, to: Bound<&[u8]>) -> Option<Entry<'a>> {
        let to = match to {
            Bound::Included(key) | Bound::Excluded(key) if self.is_below_upper(key) => to,
            _ => self.upper_bound(),
        };
        let found = self.map.range::<_, [u8]>((Bound::Unbounded, to)).next_back()?;
        (**found.0 >= *self.lower).then_some(found)
    }

    fn is_below_upper(&self, key: &[u8]) -> bool {
        self.upper.is_empty() || key < self.upper.as_slice()
    }
}

impl Cursor for MemoryCursor<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<(), EngineError> {
        self.here = self.first_from(Bound::Included(key));
        Ok(())
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<(), EngineError> {
        self.here = self.last_to(Bound::Included(key));
        Ok(())
    }

    fn seek_to_first(&mut self) -> Result<(), EngineError> {
        self.here = self.first_from(Bound::Unbounded);
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<(), EngineError> {
        self.here = self.last_to(Bound::Unbounded);
        Ok(())
    }

    fn next(&mut self) -> Result<(), EngineError> {
        self.here = self.here.and_then(|(key, _)| self.first_from(Bound::Excluded(key)));
        Ok(())
    }

    fn prev(&mut self) -> Result<(), EngineError> {
        self.here = self.here.and_then(|(key, _)| self.last_to(Bound::Excluded(key)));
        Ok(())
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.here.map(|(key, value)| (&**key, &**value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0u8..3, 0..4)
    }

    fn model_and_engine(entries: &BTreeMap<Vec<u8>, u8>) -> MemoryEngine {
        let engine = MemoryEngine::default();
        let mut batch = WriteBatch::default();
        for (key, value) in entries {
            batch.push(Modify::Put(Cf::Raw, key.clone(), vec![*value]));
        }
        engine.write(&batch).unwrap();
        engine
    }

    proptest! {
        #[test]
        fn a_cursor_moves_as_in_a_sorted_map(
            entries in proptest::collection::btree_map(key(), any::<u8>(), 0..20),
            lower in key(), upper in key(),
            moves in proptest::collection::vec((0u8..6, key()), 1..30),
        ) {
            let snapshot = model_and_engine(&entries).snapshot();
            let mut cursor = snapshot.cursor(Cf::Raw, &lower, &upper);
            let inside: Vec<_> =
                entries.iter().filter(|(k, _)| **k >= lower && (upper.is_empty() || **k < upper)).collect();
            let mut at: Option<usize> = None;
            for (kind, key) in moves {
                match kind {
                    0 => cursor.seek_to_first(),
                    1 => cursor.seek_to_last(),
                    2 => cursor.seek(&key),
                    3 => cursor.seek_for_prev(&key),
                    4 => cursor.next(),
                    _ => cursor.prev(),
                }
                .unwrap();
                at = match kind {
                    0 => Some(0),
                    1 => inside.len().checked_sub(1),
                    2 => Some(inside.partition_point(|(k, _)| **k < key)),
                    3 => inside.partition_point(|(k, _)| **k <= key).checked_sub(1),
                    4 => at.map(|at| at + 1),
                    _ => at.and_then(|at| at.checked_sub(1)),
                }
                .filter(|at| *at < inside.len());
                let expected = at.map(|at| (inside[at].0.as_slice(), std::slice::from_ref(inside[at].1)));
                prop_assert_eq!(cursor.entry(), expected);
            }
        }

        #[test]
        fn a_snapshot_keeps_what_was_there_while_later_batches_pass(
            batches in proptest::collection::vec(
                proptest::collection::vec((0u8..5, key(), proptest::option::of(any::<u8>())), 0..6), 1..8),
        ) {
            let engine = MemoryEngine::default();
            let mut model: BTreeMap<(u8, Vec<u8>), u8> = BTreeMap::new();
            let mut kept = Vec::new();
            for changes in batches {
                kept.push((engine.snapshot(), model.clone()));
                let mut batch = WriteBatch::default();
                for (cf, key, value) in changes {
                    let number = Cf::from_u8(cf).unwrap();
                    match value {
                        Some(value) => {
                            batch.push(Modify::Put(number, key.clone(), vec![value]));
                            model.insert((cf, key), value);
                        }
                        None => {
                            batch.push(Modify::Delete(number, key.clone()));
                            model.remove(&(cf, key));
                        }
                    }
                }
                engine.clone().write(&batch).unwrap();
            }
            kept.push((engine.snapshot(), model));
            for (snapshot, model) in kept {
                for cf in Cf::ALL {
                    let mut cursor = snapshot.cursor(cf, b"", b"");
                    cursor.seek_to_first().unwrap();
                    for ((_, key), value) in model.iter().filter(|((number, _), _)| *number == cf as u8) {
                        prop_assert_eq!(cursor.entry(), Some((key.as_slice(), &[*value][..])));
                        prop_assert_eq!(snapshot.get(cf, key).unwrap(), Some(vec![*value]));
                        cursor.next().unwrap();
                    }
                    prop_assert_eq!(cursor.entry(), None);
                }
            }
        }
    }
}
