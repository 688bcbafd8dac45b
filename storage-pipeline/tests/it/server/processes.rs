//! Three nodes as processes, and the links between them and from their clients, which stay where they are when a node comes back
//! on another port.

use std::{collections::BTreeMap, fs, net::SocketAddr, path::PathBuf, thread, time::Duration, time::Instant};

use storage_pipeline::{CompletionMode, Outcome};
use tempfile::TempDir;

use super::{
    link::{Link, Mode},
    nodes::NODES,
    process::file,
    victim::Victim,
};
use crate::support::{PATIENCE, wait_for};

/// Where the nodes keep their data and their configuration, and the links.
pub(crate) struct Wires {
    dir: TempDir,
    links: BTreeMap<(u64, u64), Link>,
    /// Over which clients reach each node, whoever told them of it.
    doors: BTreeMap<u64, Link>,
}

impl Wires {
    pub(crate) fn new(mode: CompletionMode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pairs = NODES.into_iter().flat_map(|from| NODES.map(|to| (from, to)));
        let links: BTreeMap<_, _> =
            pairs.filter(|(from, to)| from != to).map(|pair| (pair, Link::new())).collect();
        let doors: BTreeMap<_, _> = NODES.map(|id| (id, Link::new())).into();
        for id in NODES {
            let own = links.iter().filter(|((from, _), _)| *from == id);
            let peers: Vec<_> = own.map(|((_, to), link)| (*to, link.address.to_string())).collect();
            let path = file(dir.path(), id, 7, &peers);
            let text = fs::read_to_string(&path).unwrap();
            // Short logs, so that one that comes back may need a snapshot; regions, so that it needs several.
            let settings = format!(
                "completion_mode = \"{mode}\"\ntick_ms = 20\nelection_ticks = 12\nstay_awake_us = 0\n\
                 default_timeout_ms = 2000\nlog_gc_entries = 50\nsplit_keys = [\"b\", \"key-3\"]\n\
                 advertise = \"{}\"\n",
                doors[&id].address
            );
            fs::write(&path, settings + &text).unwrap();
        }
        Self { dir, links, doors }
    }

    /// The configuration of a node.
    pub(crate) fn file(&self, id: u64) -> PathBuf {
        self.dir.path().join(format!("node-{id}.toml"))
    }

    /// A node listens there from now on.
    pub(crate) fn lead_to(&self, id: u64, address: SocketAddr) {
        let here = self.links.iter().filter(|((_, to), _)| *to == id).map(|(_, link)| link);
        here.chain([&self.doors[&id]]).for_each(|link| link.lead_to(address));
    }

    /// Where clients reach the nodes.
    pub(crate) fn doors(&self) -> impl Iterator<Item = String> {
        self.doors.values().map(|door| door.address.to_string())
    }

    /// Loses what one node says to another.
    pub(crate) fn silence(&self, from: u64, to: u64) {
        self.links[&(from, to)].set(Mode::SilentThere);
        self.links[&(to, from)].set(Mode::SilentBack);
    }

    /// Loses the messages of one node to another, and nothing that the other says, whatever its connections would come to without
    /// any answer.
    pub(crate) fn lose_messages(&self, from: u64, to: u64) {
        self.links[&(from, to)].set(Mode::Silent);
    }

    pub(crate) fn heal(&self) {
        self.links.values().for_each(|link| link.set(Mode::Open));
    }
}

/// The nodes, as processes that can be killed.
pub(crate) struct Victims {
    pub(crate) wires: Wires,
    pub(crate) running: BTreeMap<u64, Victim>,
}

impl Victims {
    pub(crate) fn start(mode: CompletionMode) -> Self {
        let mut victims = Self { wires: Wires::new(mode), running: BTreeMap::new() };
        NODES.into_iter().for_each(|id| victims.start_node(id));
        victims
    }

    pub(crate) fn start_node(&mut self, id: u64) {
        let (victim, address) = Victim::start(&self.wires.file(id));
        self.wires.lead_to(id, address);
        self.running.insert(id, victim);
    }

    pub(crate) fn kill(&mut self, id: u64) {
        self.running.remove(&id).expect("it runs").kill();
    }

    pub(crate) fn all(&self) -> Vec<Victim> {
        self.running.values().cloned().collect()
    }

    /// A node that leads the first region, or none of those that do.
    pub(crate) fn find(&self, leads: bool) -> u64 {
        let found = || self.running.iter().find(|(_, victim)| victim.leads() == leads).map(|(id, _)| *id);
        wait_for("a leader, or another one", || found().is_some());
        found().unwrap_or_else(|| self.find(leads))
    }

    /// Asks one after the other until one does it.
    pub(crate) fn ask(&self, command: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            for victim in self.running.values() {
                if let Outcome::Applied(value) = victim.ask(command) {
                    return value;
                }
            }
            assert!(Instant::now() < until, "nobody does {command}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
