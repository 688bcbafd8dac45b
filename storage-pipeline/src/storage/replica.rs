//! A store as one of several replicas: what reaches it from the others, what it knows of them, and the wish that
//! another one leads.

use std::sync::Arc;

use crate::{
    clock,
    config::Config,
    error::OpenError,
    observe::Observe,
    raftstore::{
        router::Router,
        status::ReplicaStatus,
        transport::{self, Message, MessageRefused, Transport},
    },
    storage::{Parts, Storage, open},
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
        transport: Box<dyn Transport>,
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

    /// Takes messages of the others, once they are checked.
    pub(super) fn router(&self) -> Router {
        self.0.scheduler.reader.router.clone()
    }

    /// Asks a voter to take over the leadership, if this replica has it. Returns at once, before anything has come of it;
    /// [`status`](Self::status) shows who leads. Writes are refused as [`NotLeader`](crate::Error::NotLeader) meanwhile.
    /// Where nothing comes of it within an election timeout, this replica goes on leading.
    pub fn transfer_leader(&self, to: u64) {
        self.0.scheduler.reader.router.transfer_leader(to);
    }
}
