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
    region::FIRST_REGION,
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

    /// The replica that leads the first region, which is the only one of a store that is not split. As
    /// [`leader_of`](Self::leader_of).
    #[must_use]
    pub fn leader(&self) -> Option<&Storage> {
        self.leader_of(FIRST_REGION)
    }

    /// The replica that leads a region. Where one does not know yet that it was deposed, that is the one of the latest term.
    #[must_use]
    pub fn leader_of(&self, region: u64) -> Option<&Storage> {
        let status = |storage: &Storage| storage.region(region).map(|own| own.status());
        let leads = |storage: &&Storage| status(storage).is_some_and(|own| own.role == Role::Leader);
        self.running.values().filter(leads).max_by_key(|storage| status(storage).map(|own| own.term))
    }

    /// Waits until a replica leads the first region, at most so long.
    #[must_use]
    pub fn wait_for_leader(&self, within: Duration) -> Option<&Storage> {
        self.wait_for_other_leader(raft::INVALID_ID, within)
    }

    /// Waits until another replica than this one leads the first region, at most so long.
    #[must_use]
    pub fn wait_for_other_leader(&self, than: u64, within: Duration) -> Option<&Storage> {
        wait(within, || self.leader().filter(|leader| leader.status().replica != than))
    }

    /// Waits until every region has a leader, at most so long. Returns them in the order of the regions.
    #[must_use]
    pub fn wait_for_leaders(&self, within: Duration) -> Option<Vec<&Storage>> {
        let regions = FIRST_REGION..=FIRST_REGION + self.config.split_keys.len() as u64;
        wait(within, || regions.clone().map(|region| self.leader_of(region)).collect())
    }

    /// Asks the leaders of all regions to give way to this replica, until it leads every region, at most so long. One replica
    /// serves a transaction over several regions only while it leads them all.
    #[must_use]
    pub fn wait_until_leads_all(&self, replica: u64, within: Duration) -> Option<&Storage> {
        let own = self.replica(replica)?;
        wait(within, || {
            let mut leads_all = true;
            for region in own.regions().filter(|region| region.status().role != Role::Leader) {
                leads_all = false;
                let id = region.range().id;
                let led = self.leader_of(id).and_then(|leader| leader.region(id));
                led.inspect(|led| led.transfer_leader(replica));
            }
            leads_all.then_some(own)
        })
    }

    /// Closes every replica.
    pub fn close(&self) {
        self.running.values().for_each(Storage::close);
    }
}

/// Looks for something until it is there, at most so long.
fn wait<T>(within: Duration, look: impl Fn() -> Option<T>) -> Option<T> {
    let until = Instant::now() + within;
    loop {
        match look() {
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            found => return found,
        }
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
