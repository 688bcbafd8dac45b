//! Three nodes in this process that reach each other over sockets, each with a directory on disk, and a link that can be cut
//! for each direction between two of them.

use std::{
    collections::BTreeMap,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{
    CompletionMode, Outcome, Storage,
    observe::Observe,
    raftstore::status::Role,
    server::{Node, NodeConfig},
};
use tempfile::TempDir;

use super::link::{Link, Mode};
use crate::support::{PATIENCE, Recorder, config, wait_for};

pub(crate) const NODES: [u64; 3] = [1, 2, 3];

/// The nodes.
pub(crate) struct Nodes {
    dir: TempDir,
    config: NodeConfig,
    links: BTreeMap<(u64, u64), Link>,
    running: BTreeMap<u64, Node>,
    recorders: Vec<(u64, Arc<Recorder>)>,
}

impl Nodes {
    pub(crate) fn start(mode: CompletionMode) -> Self {
        Self::start_with(mode, |_| {})
    }

    pub(crate) fn start_with(mode: CompletionMode, change: impl FnOnce(&mut NodeConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut store = config(mode, dir.path());
        store.tick = Duration::from_millis(20);
        store.election_ticks = 12;
        store.stay_awake = Duration::ZERO;
        store.voters = NODES.into();
        let listen = "127.0.0.1:0".to_owned();
        let mut config = NodeConfig { cluster_id: 7, listen, store, ..NodeConfig::default() };
        change(&mut config);
        let pairs = NODES.into_iter().flat_map(|from| NODES.map(|to| (from, to)));
        let links = pairs.filter(|(from, to)| from != to).map(|pair| (pair, Link::new())).collect();
        let mut nodes = Self { dir, config, links, running: BTreeMap::new(), recorders: Vec::new() };
        NODES.into_iter().for_each(|id| nodes.start_node(id));
        nodes
    }

    /// Starts a node on what it left.
    pub(crate) fn start_node(&mut self, id: u64) {
        let mut config = self.config.clone();
        config.store.replica_id = id;
        config.store.dir = self.dir.path().join(format!("node-{id}"));
        config.peers = self.peers_of(id);
        let recorder = Arc::<Recorder>::default();
        let node = Node::start_with(config, Some(Arc::clone(&recorder) as Arc<dyn Observe>)).unwrap();
        let here = self.links.iter().filter(|((_, to), _)| *to == id);
        here.for_each(|(_, link)| link.lead_to(node.address()));
        self.running.insert(id, node);
        self.recorders.push((id, recorder));
    }

    /// Where a node reaches the others.
    pub(crate) fn peers_of(&self, id: u64) -> BTreeMap<u64, String> {
        let own = self.links.iter().filter(|((from, _), _)| *from == id);
        own.map(|((_, to), link)| (*to, link.address.to_string())).collect()
    }

    /// Asks a node to stop, and waits until it has.
    pub(crate) fn stop_node(&mut self, id: u64) {
        self.running.remove(&id).expect("it runs").stop();
    }

    pub(crate) fn node(&self, id: u64) -> &Node {
        &self.running[&id]
    }

    pub(crate) fn storage(&self, id: u64) -> &Storage {
        self.node(id).storage()
    }

    pub(crate) fn storages(&self) -> Vec<Storage> {
        self.running.values().map(|node| node.storage().clone()).collect()
    }

    /// What watches a node since its last start.
    pub(crate) fn recorder(&self, id: u64) -> &Recorder {
        &self.recorders.iter().rev().find(|(own, _)| *own == id).expect("it was started").1
    }

    /// Sets the link from one node to another.
    pub(crate) fn cut_link(&self, from: u64, to: u64, mode: Mode) {
        self.links[&(from, to)].set(mode);
    }

    /// Sets every link from and to a node.
    pub(crate) fn cut(&self, id: u64, mode: Mode) {
        self.links
            .iter()
            .filter(|((from, to), _)| *from == id || *to == id)
            .for_each(|(_, link)| link.set(mode));
    }

    pub(crate) fn heal(&self) {
        self.links.values().for_each(|link| link.set(Mode::Open));
    }

    pub(crate) fn carried(&self, from: u64, to: u64) -> u64 {
        self.links[&(from, to)].carried()
    }

    /// The node that leads the first region, as most of them believe.
    pub(crate) fn leader(&self) -> u64 {
        self.other_leader(0)
    }

    pub(crate) fn other_leader(&self, than: u64) -> u64 {
        let led = |id: u64| {
            let status = self.storage(id).status();
            let follows = |node: &Node| {
                let seen = node.storage().status();
                seen.term == status.term && seen.leader == Some(id)
            };
            status.role == Role::Leader && self.running.values().filter(|node| follows(node)).count() >= 2
        };
        let agreed = || self.running.keys().copied().find(|id| *id != than && led(*id));
        wait_for("a leader", || agreed().is_some());
        agreed().unwrap_or_else(|| self.other_leader(than))
    }

    /// Writes a key wherever that is taken.
    pub(crate) fn put(&self, key: &[u8], value: &[u8]) {
        self.ask("a write", |storage| storage.raw_put(key, value));
    }

    /// Asks one after the other until one does it.
    pub(crate) fn ask<T>(&self, what: &str, run: impl Fn(&Storage) -> Outcome<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            for node in self.running.values() {
                if let Outcome::Applied(value) = run(node.storage()) {
                    return value;
                }
            }
            assert!(Instant::now() < until, "nobody takes {what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until every node that runs has applied the same entries of every region.
    pub(crate) fn agree(&self) {
        let applied = |node: &Node| -> Vec<_> {
            node.storage().regions().map(|region| region.applied_index()).collect()
        };
        wait_for("agreement", || {
            let mut all = self.running.values().map(applied);
            let first = all.next();
            all.all(|indices| Some(&indices) == first.as_ref())
        });
    }

    /// Makes a node lead every region.
    pub(crate) fn make_leader(&self, id: u64) {
        let leads = |region: u64| {
            let led = |of: &Node| of.storage().region(region).unwrap().status().role == Role::Leader;
            if led(self.node(id)) {
                return true;
            }
            let leader = self.running.values().find(|node| led(node));
            leader.inspect(|node| node.storage().region(region).unwrap().transfer_leader(id));
            thread::sleep(Duration::from_millis(20));
            false
        };
        for region in 1..=self.config.store.split_keys.len() as u64 + 1 {
            wait_for("the transfer", || leads(region));
        }
    }

    /// The end of every test: no node has failed, all are stopped, and all that was accepted was answered once.
    pub(crate) fn finish(mut self) {
        for (id, node) in &self.running {
            wait_for("quiescence", || node.storage().in_flight().is_quiescent());
            assert_eq!(node.storage().fault(), None, "node {id}");
        }
        for id in NODES {
            self.stop_node(id);
        }
        self.recorders.iter().for_each(|(_, recorder)| recorder.check_answers());
    }
}
