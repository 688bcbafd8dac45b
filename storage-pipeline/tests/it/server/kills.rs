//! kill -9 of nodes under load, and nodes that stand still for longer than a lease: no acknowledged write is lost, histories stay linearizable, no coin appears or vanishes, and
//! those who come back go on.

use std::{
    collections::BTreeMap,
    env, fs,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{CompletionMode, Outcome};
use tempfile::TempDir;

use super::{
    link::Link,
    load::{KEYS, Load, StopAtDrop},
    nodes::NODES,
    process::file,
    victim::Victim,
};
use crate::support::{PATIENCE, wait_for};

const ACCOUNTS: u64 = 5;

/// Three processes and the links between them, which stay where they are when a node comes back on another port.
struct Victims {
    dir: TempDir,
    links: BTreeMap<(u64, u64), Link>,
    running: BTreeMap<u64, Victim>,
}

impl Victims {
    fn start(mode: CompletionMode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pairs = NODES.into_iter().flat_map(|from| NODES.map(|to| (from, to)));
        let links: BTreeMap<_, _> =
            pairs.filter(|(from, to)| from != to).map(|pair| (pair, Link::new())).collect();
        for id in NODES {
            let own = links.iter().filter(|((from, _), _)| *from == id);
            let peers: Vec<_> = own.map(|((_, to), link)| (*to, link.address.to_string())).collect();
            let path = file(dir.path(), id, 7, &peers);
            let text = fs::read_to_string(&path).unwrap();
            // Short logs, so that one that comes back may need a snapshot; regions, so that it needs several.
            let settings = format!(
                "completion_mode = \"{mode}\"\ntick_ms = 20\nelection_ticks = 12\nstay_awake_us = 0\n\
                 default_timeout_ms = 2000\nlog_gc_entries = 50\nsplit_keys = [\"b\", \"key-3\"]\n"
            );
            fs::write(&path, settings + &text).unwrap();
        }
        let mut victims = Self { dir, links, running: BTreeMap::new() };
        NODES.into_iter().for_each(|id| victims.start_node(id));
        victims
    }

    fn start_node(&mut self, id: u64) {
        let (victim, address) = Victim::start(&self.dir.path().join(format!("node-{id}.toml")));
        let here = self.links.iter().filter(|((_, to), _)| *to == id);
        here.for_each(|(_, link)| link.lead_to(address));
        self.running.insert(id, victim);
    }

    fn kill(&mut self, id: u64) {
        self.running.remove(&id).expect("it runs").kill();
    }

    fn all(&self) -> Vec<Victim> {
        self.running.values().cloned().collect()
    }

    /// A node that leads the first region, or none of those that do.
    fn find(&self, leads: bool) -> u64 {
        let found = || self.running.iter().find(|(_, victim)| victim.leads() == leads).map(|(id, _)| *id);
        wait_for("a leader, or another one", || found().is_some());
        found().unwrap_or_else(|| self.find(leads))
    }

    /// Asks one after the other until one does it.
    fn ask(&self, command: &str) -> String {
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

/// Transfers between a few accounts, and looks at all of them, by clients of its own.
#[derive(Default)]
struct Bank {
    nodes: Mutex<Vec<Victim>>,
    stop: AtomicBool,
    next: AtomicU64,
    acknowledged: Mutex<Vec<u64>>,
    looks: AtomicU64,
}

impl Bank {
    /// Waits until something was moved and looked at.
    fn wait_for_business(&self) {
        wait_for("business", || {
            !self.acknowledged.lock().unwrap().is_empty() && self.looks.load(Ordering::Relaxed) > 0
        });
    }

    fn client(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let node = {
                let nodes = self.nodes.lock().unwrap();
                nodes.get(n as usize % nodes.len().max(1)).cloned()
            };
            let Some(node) = node else { continue };
            if n.is_multiple_of(4) {
                if let Outcome::Applied(total) = node.ask(&format!("total {ACCOUNTS}")) {
                    assert_eq!(total, "0", "every transfer moves what it takes");
                    self.looks.fetch_add(1, Ordering::Relaxed);
                }
            } else if node.ask(&format!("transfer {n} {} {}", n % ACCOUNTS, (n / 7) % ACCOUNTS)).is_applied()
            {
                self.acknowledged.lock().unwrap().push(n);
            } else {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

/// Lets whoever leads stand still until others have written without it. Then it is asked for what they wrote, and goes on: its
/// lease is over, whatever it believes.
fn pause_leader(victims: &Victims, load: &Load<Victim>, bank: &Bank) {
    let leader = victims.find(true);
    let paused = &victims.running[&leader];
    paused.pause();
    let others: Vec<_> =
        NODES.into_iter().filter(|id| *id != leader).map(|id| victims.running[&id].clone()).collect();
    load.follow(others.clone());
    *bank.nodes.lock().unwrap() = others;
    load.wait_for_commands("commands while a leader stands still");
    let read = |n: usize| {
        load.read(paused, &format!("key-{n}"));
    };
    paused.go_on(read, KEYS as usize);
}

#[test]
fn kill_9_of_leaders_followers_and_all_and_a_leader_that_stands_still_lose_nothing_that_was_acknowledged() {
    // More of them in the long stage.
    let rounds: u64 = env::var("NODE_KILL_ROUNDS").map_or(1, |rounds| rounds.parse().expect("a number"));
    for mode in CompletionMode::ALL {
        let mut victims = Victims::start(mode);
        let (load, bank) = (Load::on(victims.all()), Bank::default());
        let tell = |victims: &Victims| {
            load.follow(victims.all());
            *bank.nodes.lock().unwrap() = victims.all();
        };
        tell(&victims);
        thread::scope(|scope| {
            let stop = StopAtDrop(&bank.stop);
            let clients: Vec<_> = (0..2).map(|_| scope.spawn(|| bank.client())).collect();
            load.run(3, || {
                for round in 0..rounds {
                    load.wait_for_commands("commands");
                    // Each node in its turn too, whatever it does.
                    for victim in [victims.find(true), victims.find(false), round % 3 + 1] {
                        victims.kill(victim);
                        tell(&victims);
                        load.wait_for_commands("commands without a node");
                        victims.start_node(victim);
                        tell(&victims);
                        load.wait_for_commands("commands of all");
                    }
                    pause_leader(&victims, &load, &bank);
                    tell(&victims);
                    load.wait_for_commands("commands of all");
                    NODES.into_iter().for_each(|id| victims.kill(id));
                    NODES.into_iter().for_each(|id| victims.start_node(id));
                    tell(&victims);
                    load.wait_for_commands("commands after all were killed");
                }
                bank.wait_for_business();
            });
            drop(stop);
            clients.into_iter().for_each(|client| client.join().unwrap());
        });
        assert_eq!(victims.ask(&format!("total {ACCOUNTS}")), "0");
        let acknowledged = bank.acknowledged.into_inner().unwrap();
        for number in &acknowledged {
            assert_ne!(victims.ask(&format!("record {number}")), "", "transfer {number} is lost");
        }
        assert!(load.history.check() > 100);
        NODES.into_iter().for_each(|id| victims.kill(id));
    }
}
