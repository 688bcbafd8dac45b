//! A group of replicas in one process: opened, stopped and started one by one, joined by a [`Network`].

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    config::Config,
    error::OpenError,
    observe::Observe,
    raftstore::status::Role,
    storage::{Network, Parts, Storage},
};

/// How a replica gets its two stores.
type MakeParts = Box<dyn Fn(u64) -> Result<Parts, OpenError> + Send + Sync>;
/// How a replica gets its observer.
type MakeObserver = Box<dyn Fn(u64) -> Option<Arc<dyn Observe>> + Send + Sync>;

/// Replicas of one store in one process, each a [`Storage`] with a directory of its own.
///
/// ```
/// use std::time::Duration;
/// use storage_pipeline::{Config, Error, Outcome, storage::Cluster};
///
/// let dir = tempfile::tempdir()?;
/// let mut config = Config::new(dir.path());
/// config.tick = Duration::from_millis(10);
/// let cluster = Cluster::open(config, 3)?;
/// let leader = cluster.wait_for_leader(Duration::from_secs(10)).expect("three of three can elect one");
/// leader.raw_put(b"key", b"value").into_result()?;
///
/// // The others refuse, and say who leads.
/// let id = leader.status().replica;
/// let follower = cluster.replica(id % 3 + 1).expect("it was opened");
/// assert!(matches!(follower.raw_get(b"key"), Outcome::NotExecuted(Error::NotLeader { .. })));
///
/// // Two of three go on without the leader, with all that was acknowledged.
/// cluster.network().isolate(id);
/// let wait = || cluster.wait_for_other_leader(id, Duration::from_secs(10));
/// let value = loop {
///     match wait().expect("two of three can elect one").raw_get(b"key") {
///         Outcome::Applied(value) => break value,
///         refused => assert!(refused.is_not_executed()),
///     }
/// };
/// assert_eq!(value.as_deref(), Some(&b"value"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cluster {
    config: Config,
    network: Network,
    parts: MakeParts,
    observer: MakeObserver,
    running: BTreeMap<u64, Storage>,
}

impl Cluster {
    /// Opens a group of so many voters with ids from 1 on. Replica `N` lives in `replica-N` under `config.dir`; the ids in
    /// `config` are not looked at.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn open(config: Config, voters: usize) -> Result<Self, OpenError> {
        let dir = config.dir.clone();
        Self::open_with(
            config,
            voters,
            move |id| Parts::on_disk(&dir.join(format!("replica-{id}"))),
            |_| None,
        )
    }

    /// Opens a group on parts of the caller's making, which are asked for whenever a replica starts, each told to an
    /// observer of its own.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn open_with(
        mut config: Config,
        voters: usize,
        parts: impl Fn(u64) -> Result<Parts, OpenError> + Send + Sync + 'static,
        observer: impl Fn(u64) -> Option<Arc<dyn Observe>> + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        config.voters = (1..=voters as u64).collect();
        let (parts, observer) = (Box::new(parts), Box::new(observer));
        let mut cluster = Self { config, network: Network::new(), parts, observer, running: BTreeMap::new() };
        for id in cluster.config.voters.clone() {
            cluster.start(id)?;
        }
        Ok(cluster)
    }

    /// Starts a replica that was stopped, or one that is to join the group by
    /// [`Storage::change_members`]. One that runs is left alone.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn start(&mut self, replica: u64) -> Result<(), OpenError> {
        if self.running.contains_key(&replica) {
            return Ok(());
        }
        let mut config = self.config.clone();
        config.replica_id = replica;
        let parts = (self.parts)(replica)?;
        let storage =
            Storage::open_replica(config, parts, self.network.transport(), (self.observer)(replica))?;
        self.network.join(replica, storage.inboxes());
        self.running.insert(replica, storage);
        Ok(())
    }

    /// Stops a replica: the others hear nothing more of it, and it is closed. Callers that it has not answered yet are.
    pub fn stop(&mut self, replica: u64) {
        self.network.leave(replica);
        if let Some(storage) = self.running.remove(&replica) {
            storage.close();
        }
    }

    /// A replica that runs.
    #[must_use]
    pub fn replica(&self, id: u64) -> Option<&Storage> {
        self.running.get(&id)
    }

    /// All replicas that run, in the order of their ids.
    pub fn replicas(&self) -> impl Iterator<Item = (u64, &Storage)> {
        self.running.iter().map(|(id, storage)| (*id, storage))
    }

    /// The links between the replicas.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The replica that leads. Where one does not know yet that it was deposed, that is the one of the latest term.
    #[must_use]
    pub fn leader(&self) -> Option<&Storage> {
        let leads = |storage: &&Storage| storage.status().role == Role::Leader;
        self.running.values().filter(leads).max_by_key(|storage| storage.status().term)
    }

    /// Waits until a replica leads, at most so long.
    #[must_use]
    pub fn wait_for_leader(&self, within: Duration) -> Option<&Storage> {
        self.wait_for_other_leader(raft::INVALID_ID, within)
    }

    /// Waits until another replica than this one leads, at most so long.
    #[must_use]
    pub fn wait_for_other_leader(&self, than: u64, within: Duration) -> Option<&Storage> {
        let until = Instant::now() + within;
        loop {
            if let Some(leader) = self.leader().filter(|leader| leader.status().replica != than) {
                return Some(leader);
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Closes every replica.
    pub fn close(&self) {
        self.running.values().for_each(Storage::close);
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<_> = self.running.keys().collect();
        f.debug_struct("Cluster")
            .field("running", &ids)
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}
