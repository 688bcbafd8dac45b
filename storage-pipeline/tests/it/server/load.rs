//! Clients that write and read the same few keys on whatever node they believe to lead, and write down what they heard.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use storage_pipeline::{
    Outcome, Storage,
    command::{RawGet, RawPut},
    raftstore::status::Role,
};

use super::history::{History, Op};
use crate::support::wait_for;

const KEYS: u64 = 6;
const PATIENCE: Duration = Duration::from_secs(2);

/// What the clients share.
#[derive(Default)]
pub(crate) struct Load {
    pub(crate) history: History,
    nodes: Mutex<Vec<Storage>>,
    stop: AtomicBool,
    values: AtomicU64,
    applied: AtomicU64,
}

impl Load {
    /// Tells the clients whom they may ask.
    pub(crate) fn follow(&self, nodes: Vec<Storage>) {
        *self.nodes.lock().unwrap() = nodes;
    }

    /// Runs a test's course while `clients` of them write and read.
    pub(crate) fn run(&self, clients: u64, course: impl FnOnce()) {
        thread::scope(|scope| {
            for client in 0..clients {
                scope.spawn(move || self.client(client));
            }
            course();
            self.stop.store(true, Ordering::Relaxed);
        });
        self.follow(Vec::new());
    }

    /// Waits until some more commands are applied.
    pub(crate) fn wait_for_commands(&self, what: &str) {
        let before = self.applied.load(Ordering::Relaxed);
        wait_for(what, || self.applied.load(Ordering::Relaxed) > before + 30);
    }

    /// Every node may be asked, not only those that lead for sure: one that was cut off believes so too.
    fn client(&self, client: u64) {
        for n in client.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let leaders: Vec<_> = {
                let nodes = self.nodes.lock().unwrap();
                nodes.iter().filter(|node| node.status().role == Role::Leader).cloned().collect()
            };
            let Some(node) = leaders.get((n / 3) as usize % leaders.len().max(1)) else {
                thread::sleep(Duration::from_millis(2));
                continue;
            };
            let key = format!("key-{}", n % KEYS);
            if n % 3 == 0 { self.read(node, &key) } else { self.write(node, &key) }
        }
    }

    fn write(&self, node: &Storage, key: &str) {
        let value = self.values.fetch_add(1, Ordering::Relaxed);
        let put = RawPut { key: key.into(), value: value.to_string().into() };
        let called = self.history.now();
        let outcome = node.execute_within(put, PATIENCE);
        match outcome {
            Outcome::Applied(()) => self.history.add(key, Op::Put(value), called, Some(self.history.now())),
            Outcome::Indeterminate(_) => self.history.add(key, Op::Put(value), called, None),
            Outcome::NotExecuted(_) => thread::sleep(Duration::from_millis(2)),
        }
        self.applied.fetch_add(u64::from(outcome.is_applied()), Ordering::Relaxed);
    }

    fn read(&self, node: &Storage, key: &str) {
        let called = self.history.now();
        if let Outcome::Applied(value) = node.execute_within(RawGet { key: key.into() }, PATIENCE) {
            let value = value.map(|value| String::from_utf8(value).unwrap().parse().unwrap());
            self.history.add(key, Op::Get(value), called, Some(self.history.now()));
            self.applied.fetch_add(1, Ordering::Relaxed);
        }
    }
}
