//! A store as one of several replicas: what reaches it from the others, what it knows of them, and the wish that
//! another one leads.

use std::sync::{Arc, Weak};

use crate::{
    clock,
    config::Config,
    error::{Error, OpenError, Outcome},
    members::{MemberChange, Members},
    observe::Observe,
    raftstore::{
        router::Router,
        snapshot::SnapshotChunk,
        staging::Staging,
        status::ReplicaStatus,
        transport::{self, Message, MessageRefused, Transport},
    },
    region::FIRST_REGION,
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

    /// Takes a message about a region that another replica's raft sent. Never blocks.
    ///
    /// # Errors
    /// Why it is not taken. A message that belongs here is lost then, and raft sends it again.
    pub fn receive(&self, region: u64, message: Message) -> Result<(), MessageRefused> {
        let scheduler = &self.0.scheduler;
        transport::check(&message, scheduler.config.replica_id)?;
        let own = scheduler.reader.find(region).ok_or(MessageRefused::UnknownRegion { region })?;
        own.router.raft(message)
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
        let region = chunk.region;
        let at = self.place_of(region).ok_or(MessageRefused::UnknownRegion { region })?;
        threads.stagings[at].stage(chunk).map_err(|_| MessageRefused::NotKept)
    }

    /// What this replica knows of its group: of the first region's, where there are several.
    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        self.first_region().status()
    }

    /// What a window of timestamps is bound to: the term that this replica surely leads at this moment. Nobody else gives
    /// out any where there is nobody else.
    pub(super) fn fence(&self) -> Option<u64> {
        if self.0.is_alone {
            return Some(0);
        }
        self.0.scheduler.reader.of(FIRST_REGION).lease.term_at(clock::now())
    }

    /// What the others can reach of this replica, for each region: where messages go once they are checked, and where
    /// chunks wait. The latter keeps nothing open.
    pub(super) fn inboxes(&self) -> Vec<(Router, Weak<Staging>)> {
        let regions = &self.0.scheduler.reader.regions;
        let stagings = self.0.threads.stagings.iter().map(Arc::downgrade);
        regions.iter().map(|region| region.router.clone()).zip(stagings).collect()
    }

    /// Asks a voter to take over the leadership, of the first region where there are several. As
    /// [`StoreRegion::transfer_leader`](super::StoreRegion::transfer_leader).
    pub fn transfer_leader(&self, to: u64) {
        self.first_region().transfer_leader(to);
    }

    /// Changes who belongs to the group, of the first region where there are several. As
    /// [`StoreRegion::change_members`](super::StoreRegion::change_members).
    ///
    /// ```
    /// use std::time::Duration;
    /// use storage_pipeline::{Config, members::MemberChange, storage::Cluster};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let mut config = Config::new(dir.path());
    /// config.tick = Duration::from_millis(10);
    /// let mut cluster = Cluster::open(config, 1)?;
    /// cluster.start(2)?;
    /// let leader = cluster.wait_for_leader(Duration::from_secs(10)).expect("one of one elects itself");
    /// while !leader.change_members(&[MemberChange::AddLearner(2)]).is_applied() {}
    /// let members = leader.change_members(&[MemberChange::AddVoter(2)]).into_result()?;
    /// assert_eq!(members.voters, [1, 2].into());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// What is refused is *not executed*, with [`Error::MemberChange`] where the change makes no sense now.
    pub fn change_members(&self, changes: &[MemberChange]) -> Outcome<Members> {
        self.first_region().change_members(changes)
    }

    /// The members, of the first region where there are several, as far as this replica has applied changes of them.
    ///
    /// # Errors
    /// The data engine's refusal, or [`Error::Corrupt`].
    pub fn members(&self) -> Result<Members, Error> {
        self.first_region().members()
    }
}
