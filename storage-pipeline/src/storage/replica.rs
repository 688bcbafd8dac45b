//! A store as one of several replicas: what reaches it from the others, what it knows of them, and the wish that
//! another one leads.

use std::sync::{Arc, Weak};

use crate::{
    clock,
    config::Config,
    error::OpenError,
    observe::Observe,
    raftstore::{
        router::Router,
        snapshot::SnapshotChunk,
        staging::Staging,
        status::ReplicaStatus,
        transport::{self, Message, MessageRefused, Transport},
    },
    storage::{Parts, Storage, open, running::Running},
};

impl Storage {
    /// Opens one replica of a group whose members reach each other through `transport`. It returns once the replica
    /// runs; whether it leads, and when, is decided with the others. What the others send it is handed to
    /// [`receive`](Self::receive). [`Cluster`](super::Cluster) does all that for a group in one process.
    ///
    /// A group begins with the replicas that [`Config::voters`] names, and each must be opened with the same list. Later
    /// the replica knows the members from its own data.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_replica(
        config: Config,
        parts: Parts,
        transport: Arc<dyn Transport>,
        observer: Option<Arc<dyn Observe>>,
    ) -> Result<Self, OpenError> {
        config.validate().map_err(OpenError::Config)?;
        open::open(config, parts, Some(transport), observer).map(|running| Self(Arc::new(running)))
    }

    /// Takes a message that another replica's raft sent. Never blocks.
    ///
    /// # Errors
    /// Why it is not taken. A message that belongs here is lost then, and raft sends it again.
    pub fn receive(&self, message: Message) -> Result<(), MessageRefused> {
        transport::check(&message, self.0.scheduler.config.replica_id)?;
        self.0.scheduler.reader.router.raft(message)
    }

    /// Takes a chunk of a snapshot that another replica sends, on whatever thread brings it. It is written beside the data
    /// and installed once the whole snapshot is there and raft wants it.
    ///
    /// # Errors
    /// Why it is not taken. The snapshot is of no use then; raft takes another one later.
    pub fn receive_chunk(&self, chunk: &SnapshotChunk) -> Result<(), MessageRefused> {
        let Running { scheduler, threads, .. } = &*self.0;
        if chunk.to != scheduler.config.replica_id {
            return Err(MessageRefused::WrongReplica { to: chunk.to });
        }
        if scheduler.is_closing() {
            return Err(MessageRefused::Closed);
        }
        threads.staging.stage(chunk).map_err(|_| MessageRefused::NotKept)
    }

    /// What this replica knows of its group.
    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        self.0.status.get()
    }

    /// What a window of timestamps is bound to: the term that this replica surely leads at this moment. Nobody else gives
    /// out any where there is nobody else.
    pub(super) fn fence(&self) -> Option<u64> {
        if self.0.is_alone {
            return Some(0);
        }
        self.0.scheduler.reader.lease.term_at(clock::now())
    }

    /// What the others can reach of this replica: where messages go once they are checked, and where chunks wait. The
    /// latter keeps nothing open.
    pub(super) fn inbox(&self) -> (Router, Weak<Staging>) {
        (self.0.scheduler.reader.router.clone(), Arc::downgrade(&self.0.threads.staging))
    }

    /// Asks a voter to take over the leadership, if this replica has it. Returns at once, before anything has come of it;
    /// [`status`](Self::status) shows who leads. Writes are refused as [`NotLeader`](crate::Error::NotLeader) meanwhile.
    /// Where nothing comes of it within an election timeout, this replica goes on leading.
    pub fn transfer_leader(&self, to: u64) {
        self.0.scheduler.reader.router.transfer_leader(to);
    }
}
