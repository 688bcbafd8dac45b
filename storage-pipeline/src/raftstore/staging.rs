//! Where snapshots of other replicas wait, beside the data, until they are installed. A crash at any moment leaves the
//! replica as it was before the snapshot, or lets the next start finish what was begun. A power loss may take any write
//! since the last sync, and leave later ones.
//!
//! | moment | what a start finds and does |
//! |---|---|
//! | chunks arrive | some chunks without a manifest: they are dropped |
//! | they are synced; the manifest is written, and synced | it installs the snapshot and begins the log anew behind it |
//! | the log is begun anew, and synced | the same |
//! | the data is replaced, in several batches, the last one with the applied index; all is synced | the same, from the first batch on |
//! | the manifest is removed, and that is synced before anything else is applied | some chunks without a manifest |

use std::{collections::BTreeSet, sync::Arc};

use raft::eraftpb::ConfState;

use crate::{
    apply::{
        membership::Membership,
        state::{ApplyState, decode_members, encode_members, save_membership},
    },
    engine::{Cf, Engine, EngineError, Modify, Snapshot, WriteBatch, modify},
    error::Error,
    planted::planted,
    primitive::Mutex,
    raftstore::{
        log_storage::Position,
        snapshot::{SHARED, SHARED_NUMBERS, Sending, SnapshotChunk},
    },
    region::RegionEpoch,
    txn::meta::Number,
};

const MANIFEST_KEY: &[u8] = b"snapshot";
/// Keys of chunks lie between these: prefix, index, term, number.
const CHUNKS: [&[u8]; 2] = [b"snapshot/", b"snapshot0"];
/// Bytes of keys that are removed in one batch.
const REMOVED_BYTES: usize = 1 << 20;

/// What is to be installed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    /// The last entry that the snapshot holds.
    pub(crate) position: Position,
    pub(crate) chunks: u64,
    pub(crate) members: ConfState,
}

/// The place where they wait: keys of its own in the data, so that every engine has one.
pub(crate) struct Staging {
    engine: Arc<dyn Engine>,
    /// Held by whoever changes what is staged: chunks arrive on threads of the transport.
    arrived: Mutex<Arrived>,
}

/// What has arrived of a snapshot. A start drops the chunks of which nobody knows this any more.
#[derive(Default)]
struct Arrived {
    sending: Sending,
    position: Position,
    numbers: BTreeSet<u64>,
}

impl Staging {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, arrived: Mutex::default() }
    }

    /// Takes a chunk. Chunks arrive in any order, some never and some twice; the first that comes of a sending replaces whatever
    /// had arrived of earlier ones.
    ///
    /// # Errors
    /// The engine's refusal; a later sending has begun, or it is of another position than the rest of its sending; or a snapshot is complete and waits to be
    /// installed.
    pub(crate) fn stage(&self, chunk: &SnapshotChunk) -> Result<(), EngineError> {
        let mut arrived = self.arrived.lock();
        let view = self.engine.snapshot();
        if view.get(Cf::Meta, MANIFEST_KEY)?.is_some() {
            return Err(EngineError::new("another snapshot is being installed"));
        }
        let SnapshotChunk { sending, position, number, .. } = *chunk;
        let is_first = sending > arrived.sending || arrived.numbers.is_empty();
        if !is_first && (sending, position) != (arrived.sending, arrived.position) {
            return Err(EngineError::new("another snapshot arrives"));
        }
        let mut batch = WriteBatch::default();
        if is_first {
            remove_all(&*view, Cf::Meta, CHUNKS, |removed| {
                removed.modifies().iter().for_each(|change| batch.push(change.clone()));
                Ok(())
            })?;
            *arrived = Arrived { sending, position, numbers: BTreeSet::new() };
        }
        batch.push(Modify::Put(Cf::Meta, chunk_key(position, number), chunk.changes.clone()));
        self.engine.write(&batch)?;
        arrived.numbers.insert(number);
        Ok(())
    }

    /// Makes a snapshot ready to be installed and syncs it, if all the chunks of its sending are there.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(crate) fn complete(&self, sending: Sending, manifest: &Manifest) -> Result<bool, EngineError> {
        let arrived = self.arrived.lock();
        let is_of_it = (arrived.sending, arrived.position) == (sending, manifest.position);
        // Where there is no key there is no chunk.
        let is_whole = manifest.chunks == 0
            || is_of_it && (0..manifest.chunks).all(|number| arrived.numbers.contains(&number));
        if !is_whole || self.engine.snapshot().get(Cf::Meta, MANIFEST_KEY)?.is_some() {
            return Ok(false);
        }
        let Position { index, term } = manifest.position;
        let mut stored: Vec<u8> =
            [index, term, manifest.chunks].into_iter().flat_map(u64::to_be_bytes).collect();
        stored.extend(encode_members(&manifest.members));
        // No manifest is ever found without its chunks.
        self.engine.sync()?;
        let mut batch = WriteBatch::default();
        batch.push(Modify::Put(Cf::Meta, MANIFEST_KEY.to_vec(), stored));
        self.engine.write(&batch)?;
        self.engine.sync()?;
        Ok(true)
    }

    /// The snapshot that is complete.
    ///
    /// # Errors
    /// The engine's refusal, or [`Error::Corrupt`].
    pub(crate) fn manifest(&self) -> Result<Option<Manifest>, Error> {
        let Some(stored) = self.engine.snapshot().get(Cf::Meta, MANIFEST_KEY)? else { return Ok(None) };
        let decoded = stored.split_first_chunk::<24>().and_then(|(numbers, members)| {
            let (numbers, _) = numbers.as_chunks::<8>();
            let [index, term, chunks] = [0, 1, 2].map(|n: usize| u64::from_be_bytes(numbers[n]));
            let members = decode_members(members)?;
            Some(Manifest { position: Position { index, term }, chunks, members })
        });
        decoded.map(Some).ok_or_else(|| Error::Corrupt("the manifest of a snapshot cannot be decoded".into()))
    }

    /// Replaces the group's data by what is staged, in batches of a bounded size, and syncs it. The applied index comes with
    /// the last one. It may be begun again after a crash, until [`finish`](Self::finish) removes what is staged.
    ///
    /// # Errors
    /// The engine's refusal, or a chunk that is missing or cannot be decoded.
    pub(crate) fn install(&self, manifest: &Manifest) -> Result<(), Error> {
        let view = self.engine.snapshot();
        for cf in SHARED {
            remove_all(&*view, cf, [b"", b""], |batch| self.engine.write(batch))?;
        }
        let mut batch = WriteBatch::default();
        SHARED_NUMBERS.iter().for_each(|number| {
            batch.push(Modify::Delete(Cf::Meta, number.key().to_vec()));
        });
        self.engine.write(&batch)?;
        for number in 0..manifest.chunks {
            let chunk = view.get(Cf::Meta, &chunk_key(manifest.position, number))?;
            let chunk = chunk.ok_or_else(|| Error::Corrupt("a chunk of a snapshot is missing".into()))?;
            let mut batch = WriteBatch::default();
            modify::decode(&chunk, |change| batch.push(change))?;
            self.engine.write(&batch)?;
        }
        let Position { index, term } = manifest.position;
        let mut batch = WriteBatch::default();
        ApplyState { index, term }.save(None, &mut batch);
        // The first chunk has brought the count of their changes.
        let conf_ver = Number::ConfVer.load(&*self.engine.snapshot())?;
        let conf_ver = conf_ver.unwrap_or(RegionEpoch::default().conf_ver);
        let members = manifest.members.clone();
        save_membership(&Membership { members, index, conf_ver }, &mut batch);
        self.engine.write(&batch)?;
        if planted!(UnsyncedInstall) {
            return Ok(());
        }
        Ok(self.engine.sync()?)
    }

    /// Ends an install. The log has to begin behind the snapshot by now, or to hold its last entry.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(crate) fn finish(&self, manifest: &Manifest) -> Result<(), EngineError> {
        self.remove(Some(Number::Synced.put(manifest.position.index)))
    }

    /// Drops everything that is staged.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(crate) fn clear(&self) -> Result<(), EngineError> {
        self.remove(None)
    }

    /// Removes the manifest first, with another change, so that it is gone for good before one of its chunks is.
    fn remove(&self, beside: Option<Modify>) -> Result<(), EngineError> {
        let mut arrived = self.arrived.lock();
        arrived.numbers.clear();
        let view = self.engine.snapshot();
        if view.get(Cf::Meta, MANIFEST_KEY)?.is_some() {
            let mut batch = WriteBatch::default();
            batch.push(Modify::Delete(Cf::Meta, MANIFEST_KEY.to_vec()));
            beside.into_iter().for_each(|change| batch.push(change));
            self.engine.write(&batch)?;
            if !planted!(UnsyncedInstall) {
                self.engine.sync()?;
            }
        }
        remove_all(&*view, Cf::Meta, CHUNKS, |batch| self.engine.write(batch))
    }
}

fn chunk_key(position: Position, number: u64) -> Vec<u8> {
    let mut key = CHUNKS[0].to_vec();
    [position.index, position.term, number].iter().for_each(|word| key.extend(word.to_be_bytes()));
    key
}

/// Removes every key of a range that a view has, in batches of a bounded size.
fn remove_all(
    view: &dyn Snapshot,
    cf: Cf,
    [lower, upper]: [&[u8]; 2],
    mut write: impl FnMut(&WriteBatch) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut cursor = view.cursor(cf, lower, upper);
    cursor.seek_to_first()?;
    let (mut batch, mut bytes) = (WriteBatch::default(), 0);
    while let Some((key, _)) = cursor.entry() {
        bytes += key.len();
        batch.push(Modify::Delete(cf, key.to_vec()));
        if bytes >= REMOVED_BYTES {
            write(&batch)?;
            batch.clear();
            bytes = 0;
        }
        cursor.next()?;
    }
    if batch.modifies().is_empty() { Ok(()) } else { write(&batch) }
}
