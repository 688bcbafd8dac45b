//! A region's part of a data engine that several regions share: its range of keys, and names of its own for what the
//! pipeline keeps of it. Whoever works on one region needs not know that there are others. Hands on an engine.

use std::{borrow::Cow, sync::Arc};

use super::{Cf, Cursor, Engine, EngineError, Modify, Snapshot, WriteBatch};
use crate::{
    region::{FIRST_REGION, Region},
    txn::{Key, meta::Number},
};

/// The part of an engine that belongs to one region.
///
/// The first region's names are those of a store that is not split, so that such a store needs no view of itself.
pub(crate) struct RegionEngine {
    engine: Arc<dyn Engine>,
    part: Arc<Part>,
}

/// What belongs to a region.
struct Part {
    id: u64,
    /// Before each name in [`Cf::Meta`].
    prefix: Vec<u8>,
    /// Bounds of raw keys, and of transactional ones as they are stored. An empty upper one is none.
    raw: [Vec<u8>; 2],
    encoded: [Vec<u8>; 2],
}

impl RegionEngine {
    pub(crate) fn new(engine: Arc<dyn Engine>, region: &Region) -> Self {
        let Region { id, start_key, end_key } = region;
        let mut prefix = Vec::new();
        if *id != FIRST_REGION {
            prefix.extend_from_slice(b"region/");
            prefix.extend_from_slice(&id.to_be_bytes());
        }
        let encode = |key: &[u8]| if key.is_empty() { Vec::new() } else { Key::from_raw(key).into_encoded() };
        let encoded = [encode(start_key), encode(end_key)];
        let part = Part { id: *id, prefix, raw: [start_key.clone(), end_key.clone()], encoded };
        Self { engine, part: Arc::new(part) }
    }
}

impl Part {
    fn name<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        if self.prefix.is_empty() { Cow::Borrowed(key) } else { Cow::Owned([&self.prefix, key].concat()) }
    }

    fn bounds(&self, cf: Cf) -> [&[u8]; 2] {
        let [lower, upper] = if cf == Cf::Raw { &self.raw } else { &self.encoded };
        [lower, upper]
    }

    /// The change as the shared engine has to make it.
    fn place(&self, mut change: Modify) -> Result<Modify, EngineError> {
        let (Modify::Put(cf, key, _) | Modify::Delete(cf, key)) = &mut change;
        if *cf == Cf::Meta {
            *key = self.name(key).into_owned();
            return Ok(change);
        }
        let [lower, upper] = self.bounds(*cf);
        if key.as_slice() < lower || !(upper.is_empty() || key.as_slice() < upper) {
            let key = key.escape_ascii();
            return Err(EngineError::new(format!("key \"{key}\" does not belong to region {}", self.id)));
        }
        Ok(change)
    }
}

impl Engine for RegionEngine {
    fn write(&self, batch: &WriteBatch) -> Result<(), EngineError> {
        let mut placed = WriteBatch::default();
        self.place(&mut batch.clone(), &mut placed)?;
        self.engine.write(&placed)
    }

    fn place(&self, batch: &mut WriteBatch, behind: &mut WriteBatch) -> Result<(), EngineError> {
        batch.drain().try_for_each(|change| {
            behind.push(self.part.place(change)?);
            Ok(())
        })
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.engine.sync()
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(RegionSnapshot { snapshot: self.engine.snapshot(), part: Arc::clone(&self.part) })
    }
}

/// A view of a region's part.
struct RegionSnapshot {
    snapshot: Box<dyn Snapshot>,
    part: Arc<Part>,
}

impl Snapshot for RegionSnapshot {
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        // The first region has the one bound of all timestamps; the others only look at it.
        if cf == Cf::Meta && key != Number::TimestampBound.key() {
            return self.snapshot.get(cf, &self.part.name(key));
        }
        self.snapshot.get(cf, key)
    }

    fn cursor<'a>(&'a self, cf: Cf, lower: &[u8], upper: &[u8]) -> Box<dyn Cursor + 'a> {
        if cf == Cf::Meta {
            let [lower, upper] = [lower, upper].map(|bound| self.part.name(bound));
            let cursor = self.snapshot.cursor(cf, &lower, &upper);
            return Box::new(Names { cursor, part: &self.part });
        }
        let [first, last] = self.part.bounds(cf);
        let lower = lower.max(first);
        let upper = match (upper, last) {
            (bound, []) | ([], bound) => bound,
            (upper, last) => upper.min(last),
        };
        let upper = if upper.is_empty() { upper } else { upper.max(lower) };
        self.snapshot.cursor(cf, lower, upper)
    }
}

/// A cursor over names, which shows them as the region knows them.
struct Names<'a> {
    cursor: Box<dyn Cursor + 'a>,
    part: &'a Part,
}

impl Cursor for Names<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<(), EngineError> {
        self.cursor.seek(&self.part.name(key))
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<(), EngineError> {
        self.cursor.seek_for_prev(&self.part.name(key))
    }

    fn seek_to_first(&mut self) -> Result<(), EngineError> {
        self.cursor.seek_to_first()
    }

    fn seek_to_last(&mut self) -> Result<(), EngineError> {
        self.cursor.seek_to_last()
    }

    fn next(&mut self) -> Result<(), EngineError> {
        self.cursor.next()
    }

    fn prev(&mut self) -> Result<(), EngineError> {
        self.cursor.prev()
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        let (key, value) = self.cursor.entry()?;
        Some((key.strip_prefix(self.part.prefix.as_slice())?, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::memory::MemoryEngine, region::Regions};

    fn parts(engine: &MemoryEngine) -> Vec<RegionEngine> {
        let regions = Regions::split_at(&[b"h".to_vec(), b"q".to_vec()]);
        let part = |region| RegionEngine::new(Arc::new(engine.clone()), region);
        regions.all().iter().map(part).collect()
    }

    fn put(engine: &dyn Engine, cf: Cf, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        let mut batch = WriteBatch::default();
        batch.push(Modify::Put(cf, key.to_vec(), value.to_vec()));
        engine.write(&batch)
    }

    fn keys(engine: &dyn Engine, cf: Cf, lower: &[u8], upper: &[u8]) -> Vec<Vec<u8>> {
        let view = engine.snapshot();
        let mut cursor = view.cursor(cf, lower, upper);
        cursor.seek_to_first().unwrap();
        let mut found = Vec::new();
        while let Some((key, _)) = cursor.entry() {
            found.push(key.to_vec());
            cursor.next().unwrap();
        }
        found
    }

    #[test]
    fn each_region_has_its_own_range_and_its_own_names() {
        let engine = MemoryEngine::default();
        let parts = parts(&engine);
        for (part, key) in parts.iter().zip([b"a", b"h", b"q"]) {
            put(part, Cf::Raw, key, b"v").unwrap();
            put(part, Cf::Write, &Key::from_raw(key).append_ts(7), b"w").unwrap();
            put(part, Cf::Meta, b"applied", key).unwrap();
        }
        for (part, key) in parts.iter().zip([b"a", b"h", b"q"]) {
            assert_eq!(keys(part, Cf::Raw, b"", b""), [key.to_vec()]);
            assert_eq!(keys(part, Cf::Write, b"", b""), [Key::from_raw(key).append_ts(7)]);
            assert_eq!(keys(part, Cf::Meta, b"app", b"apq"), [b"applied"]);
            assert_eq!(part.snapshot().get(Cf::Meta, b"applied").unwrap().unwrap(), key);
        }
        assert_eq!(keys(&parts[1], Cf::Raw, b"c", b"e"), Vec::<Vec<u8>>::new());
        assert_eq!(keys(&parts[1], Cf::Raw, b"r", b""), Vec::<Vec<u8>>::new());
        assert_eq!(keys(&engine, Cf::Raw, b"", b"").len(), 3);
    }

    #[test]
    fn a_key_of_another_region_is_refused_and_nothing_of_its_batch_is_written() {
        let engine = MemoryEngine::default();
        let parts = parts(&engine);
        for (at, key) in [(0, b"h"), (1, b"g"), (1, b"q"), (2, b"p")] {
            let mut batch = WriteBatch::default();
            batch.push(Modify::Put(Cf::Meta, b"applied".to_vec(), b"9".to_vec()));
            batch.push(Modify::Put(Cf::Lock, Key::from_raw(key).into_encoded(), Vec::new()));
            parts[at].write(&batch).unwrap_err();
            put(&parts[at], Cf::Raw, key, b"v").unwrap_err();
        }
        assert!(Cf::ALL.iter().all(|cf| keys(&engine, *cf, b"", b"").is_empty()));
    }

    #[test]
    fn there_is_one_bound_of_timestamps_and_every_region_sees_it() {
        let engine = MemoryEngine::default();
        let parts = parts(&engine);
        put(&parts[0], Cf::Meta, Number::TimestampBound.key(), &7u64.to_le_bytes()).unwrap();
        put(&parts[1], Cf::Meta, Number::TimestampBound.key(), &9u64.to_le_bytes()).unwrap();
        for part in &parts {
            assert_eq!(Number::TimestampBound.load(&*part.snapshot()).unwrap(), Some(7));
        }
    }
}
