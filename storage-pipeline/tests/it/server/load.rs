//! Clients that write and read the same few keys on whatever node, one after the other, and write down what they heard.

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
};

use super::{
    history::{History, Op},
    victim::Victim,
};
use crate::support::wait_for;

pub(crate) const KEYS: u64 = 6;
const PATIENCE: Duration = Duration::from_secs(2);

/// What clients write to and read from.
pub(crate) trait Register: Clone + Send + Sync {
    fn put(&self, key: &str, value: u64) -> Outcome<()>;
    fn get(&self, key: &str) -> Outcome<Option<u64>>;
}

impl Register for Storage {
    fn put(&self, key: &str, value: u64) -> Outcome<()> {
        self.execute_within(RawPut { key: key.into(), value: value.to_string().into() }, PATIENCE)
    }

    fn get(&self, key: &str) -> Outcome<Option<u64>> {
        let stored = self.execute_within(RawGet { key: key.into() }, PATIENCE);
        stored.map(|value| value.map(|value| String::from_utf8(value).unwrap().parse().unwrap()))
    }
}

impl Register for Victim {
    fn put(&self, key: &str, value: u64) -> Outcome<()> {
        self.ask(&format!("put {key} {value}")).map(|_| ())
    }

    fn get(&self, key: &str) -> Outcome<Option<u64>> {
        // Every value that was written is a number.
        self.ask(&format!("get {key}")).map(|value| value.parse().ok())
    }
}

/// Ends what goes on until it is told to, also where the test fails.
pub(crate) struct StopAtDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the clients share.
pub(crate) struct Load<R> {
    pub(crate) history: History,
    nodes: Mutex<Vec<R>>,
    stop: AtomicBool,
    values: AtomicU64,
    applied: AtomicU64,
    refused: AtomicU64,
}

impl<R: Register> Load<R> {
    pub(crate) fn on(nodes: Vec<R>) -> Self {
        Self {
            history: History::default(),
            nodes: Mutex::new(nodes),
            stop: AtomicBool::default(),
            values: AtomicU64::default(),
            applied: AtomicU64::default(),
            refused: AtomicU64::default(),
        }
    }

    /// Tells the clients whom they may ask from now on.
    pub(crate) fn follow(&self, nodes: Vec<R>) {
        *self.nodes.lock().unwrap() = nodes;
    }

    /// Runs a test's course while `clients` of them write and read.
    pub(crate) fn run(&self, clients: u64, course: impl FnOnce()) {
        thread::scope(|scope| {
            let _stop = StopAtDrop(&self.stop);
            for client in 0..clients {
                scope.spawn(move || self.client(client));
            }
            course();
        });
        self.follow(Vec::new());
    }

    /// Waits until some more commands are applied.
    pub(crate) fn wait_for_commands(&self, what: &str) {
        let before = self.applied.load(Ordering::Relaxed);
        wait_for(what, || self.applied.load(Ordering::Relaxed) > before + 30);
    }

    /// How many writes were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Every node is asked, whatever it believes to be: one that was cut off may believe that it leads. Who leads a key is asked
    /// until another one does.
    fn client(&self, client: u64) {
        let mut asked = 0;
        for n in client.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let node = {
                let nodes = self.nodes.lock().unwrap();
                nodes.get(asked % nodes.len().max(1)).cloned()
            };
            let key = format!("key-{}", n % KEYS);
            let is_taken = node.is_some_and(|node| match n % 3 {
                0 => self.read(&node, &key),
                _ => self.write(&node, &key),
            });
            // Another one now and then, even where all goes well.
            if !is_taken || n % 16 == 0 {
                asked += 1;
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    fn write(&self, node: &R, key: &str) -> bool {
        let value = self.values.fetch_add(1, Ordering::Relaxed);
        let called = self.history.now();
        let outcome = node.put(key, value);
        match outcome {
            Outcome::Applied(()) => self.history.add(key, Op::Put(value), called, Some(self.history.now())),
            Outcome::Indeterminate(_) => self.history.add(key, Op::Put(value), called, None),
            Outcome::NotExecuted(_) => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
        }
        self.applied.fetch_add(u64::from(outcome.is_applied()), Ordering::Relaxed);
        outcome.is_applied()
    }

    /// Says whether it was answered.
    pub(crate) fn read(&self, node: &R, key: &str) -> bool {
        let called = self.history.now();
        let Outcome::Applied(value) = node.get(key) else { return false };
        self.history.add(key, Op::Get(value), called, Some(self.history.now()));
        self.applied.fetch_add(1, Ordering::Relaxed);
        true
    }
}
