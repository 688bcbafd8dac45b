//! Snapshots for replicas that need entries which the log has forgotten: taken from the data at one moment, which stops
//! nobody, and read in chunks while apply goes on. Hands on chunks for the transport.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use raft::{
    StorageError,
    eraftpb::{Message, Snapshot as RaftSnapshot, SnapshotMetadata},
};

use crate::{
    apply::{membership::Membership, state::load_membership},
    engine::{Cf, Engine, EngineError, Modify, Snapshot, modify},
    error::Error,
    raftstore::{
        log_storage::Position,
        staging::{Manifest, Staging},
    },
    txn::meta::Number,
};

/// Column families whose every key belongs to the group.
pub(crate) const SHARED: [Cf; 4] = [Cf::Default, Cf::Lock, Cf::Write, Cf::Raw];
/// What else belongs to the group and not to the replica.
pub(crate) const SHARED_NUMBERS: [Number; 3] = [Number::SafePoint, Number::TimestampBound, Number::ConfVer];

/// A part of a snapshot on its way from one replica to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotChunk {
    /// Id of the region that it is of.
    pub region: u64,
    /// Id of the replica that sends it.
    pub from: u64,
    /// Id of the replica that it is for.
    pub to: u64,
    /// The last entry that the snapshot holds.
    pub position: Position,
    /// Which sending of a snapshot it is of.
    pub sending: Sending,
    /// The chunk's number, counted from zero.
    pub number: u64,
    /// The keys and values, encoded as in a proposal.
    pub changes: Vec<u8>,
}

/// Tells one sending of a snapshot from every other one, of the same position too: two of them may hold more or less of what
/// comes behind it, and be cut differently, so that chunks of both make no snapshot. Later ones are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sending {
    /// The term in which its sender leads. Nobody leads in a term of which he has forgotten what he sent.
    pub term: u64,
    /// Counts what its sender has sent since it was started, from 1.
    pub number: u64,
}

/// A snapshot that raft wants to be sent.
pub(crate) struct OutgoingSnapshot {
    pub(crate) region: u64,
    /// What tells the other replica's raft, once it has all chunks.
    pub(crate) message: Message,
    pub(crate) chunks: ChunkReader,
}

/// Where the log gets snapshots from, and where those of others wait until they are installed.
pub(crate) struct Snapshots {
    engine: Arc<dyn Engine>,
    staging: Arc<Staging>,
    /// The applied index. The data may hold more, also of what a start applies again.
    applied: Arc<AtomicU64>,
    /// Taken for a replica and not sent yet.
    taken: RefCell<BTreeMap<u64, Box<dyn Snapshot>>>,
}

impl Snapshots {
    pub(crate) fn new(engine: Arc<dyn Engine>, staging: Arc<Staging>, applied: Arc<AtomicU64>) -> Self {
        Self { engine, staging, applied, taken: RefCell::default() }
    }

    /// Takes a snapshot that holds at least the entry at `index`, for this replica. Where the data is behind, as while a
    /// snapshot is being installed, raft is told to ask again.
    ///
    /// It must not wait for an entry of the leader's own term: where the replica that needs it is one of a bare majority, that
    /// entry waits for the snapshot. Data that has some of what comes behind its index does no harm: whoever gets it applies
    /// those entries once more, and serves no read before.
    pub(super) fn take(
        &self,
        index: u64,
        replica: u64,
        term_of: impl FnOnce(u64) -> u64,
    ) -> raft::Result<RaftSnapshot> {
        // ORDERING: Acquire, for the Release of apply: the data below holds all entries up to here.
        let applied = self.applied.load(Ordering::Acquire);
        let data = self.engine.snapshot();
        let members = load_membership(&*data).unwrap_or_else(|error| {
            tracing::error!(%error, "the data cannot be described for a snapshot");
            None
        });
        let members = members.filter(|members| applied >= index && applied > 0 && members.index <= applied);
        let Some(Membership { members, .. }) = members else {
            return Err(raft::Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        };
        self.taken.borrow_mut().insert(replica, data);
        let metadata = SnapshotMetadata { conf_state: Some(members), index: applied, term: term_of(applied) };
        Ok(RaftSnapshot { data: Vec::new(), metadata: Some(metadata) })
    }

    /// The data of the snapshot that was taken for a replica.
    pub(super) fn data_for(&self, replica: u64) -> Option<Box<dyn Snapshot>> {
        self.taken.borrow_mut().remove(&replica)
    }

    /// Makes a snapshot of another replica ready to be installed, if all of it has arrived.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(super) fn complete(&self, snapshot: &RaftSnapshot) -> Result<bool, EngineError> {
        let Some((sending, chunks)) = decode_sent(&snapshot.data) else { return Ok(false) };
        self.staging.complete(sending, &Manifest { chunks, ..manifest(snapshot) })
    }

    /// Drops a snapshot that raft does not want.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(super) fn discard(&self) -> Result<(), EngineError> {
        self.staging.clear()
    }
}

/// What the last message of a sending says in place of the data: which one it was, and how many chunks it had.
pub(crate) fn encode_sent(Sending { term, number }: Sending, chunks: u64) -> Vec<u8> {
    [term, number, chunks].into_iter().flat_map(u64::to_be_bytes).collect()
}

fn decode_sent(data: &[u8]) -> Option<(Sending, u64)> {
    let (words, []) = data.as_chunks::<8>() else { return None };
    let [term, number, chunks] = words.try_into().ok().map(|words: [_; 3]| words.map(u64::from_be_bytes))?;
    Some((Sending { term, number }, chunks))
}

/// What raft says of a snapshot, but for the number of its chunks.
pub(super) fn manifest(snapshot: &RaftSnapshot) -> Manifest {
    let SnapshotMetadata { conf_state, index, term } = snapshot.metadata.clone().unwrap_or_default();
    Manifest { position: Position { index, term }, chunks: 0, members: conf_state.unwrap_or_default() }
}

/// Reads a snapshot in chunks.
pub(crate) struct ChunkReader {
    data: Box<dyn Snapshot>,
    most_bytes: usize,
    /// The column family to go on in, and the key to go on from; nothing at the end.
    place: Option<(usize, Vec<u8>)>,
    number: u64,
}

impl ChunkReader {
    /// Chunks of about so many bytes, at least one key each.
    pub(crate) fn new(data: Box<dyn Snapshot>, most_bytes: usize) -> Self {
        Self { data, most_bytes, place: Some((0, Vec::new())), number: 0 }
    }

    /// The next chunk: its number and its keys and values.
    ///
    /// # Errors
    /// The engine's refusal, or a number that cannot be decoded.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let (mut puts, mut bytes) = (Vec::new(), 0);
        if self.number == 0 {
            for number in SHARED_NUMBERS {
                puts.extend(number.load(&*self.data)?.map(|value| number.put(value)));
            }
        }
        while let Some((cf, from)) = self.place.take() {
            let mut cursor = self.data.cursor(SHARED[cf], &from, b"");
            cursor.seek_to_first()?;
            while let Some((key, value)) = cursor.entry() {
                if bytes >= self.most_bytes {
                    self.place = Some((cf, key.to_vec()));
                    break;
                }
                bytes += key.len() + value.len();
                puts.push(Modify::Put(SHARED[cf], key.to_vec(), value.to_vec()));
                cursor.next()?;
            }
            if self.place.is_some() {
                break;
            }
            self.place = Some((cf + 1, Vec::new())).filter(|(next, _)| *next < SHARED.len());
        }
        if puts.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some((self.number - 1, modify::encode(&puts))))
    }
}

impl fmt::Debug for OutgoingSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingSnapshot").field("to", &self.message.to).finish_non_exhaustive()
    }
}
