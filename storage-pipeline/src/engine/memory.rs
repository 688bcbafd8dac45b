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
