//! Runs of the crash writer under the shim, kept as a journal, and what a store must still hold after a power loss at
//! one of its moments.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use storage_pipeline::{
    CompletionMode, RaftLog, Storage, Transaction,
    command::{KvPair, RawScan},
};

use super::{
    disk::{Disk, Reaches},
    journal::{Event, events},
    loss::{Loss, survivors, write_tree},
};
use crate::support::config;

/// One life of the writer: how many numbers it writes before it closes the store, or after how many events it dies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Life {
    Closes { numbers: u64 },
    IsKilled { events: u64 },
}

/// How the writer writes in all of its lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    pub(crate) log_gc_entries: u64,
    pub(crate) value_bytes: usize,
    pub(crate) raft_log: RaftLog,
    /// Where the store is split into regions.
    pub(crate) split_keys: &'static [&'static str],
}

impl Habits {
    fn split_keys(&self) -> Vec<Vec<u8>> {
        self.split_keys.iter().map(|key| key.as_bytes().to_vec()).collect()
    }
}

/// What the writer did in several lives on one directory.
pub(crate) struct Recording {
    pub(crate) root: PathBuf,
    pub(crate) mode: CompletionMode,
    pub(crate) habits: Habits,
    journal: Vec<u8>,
}

/// The names of what the writer was told is there, of its raw keys and of its transactions.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    pub(crate) raw: Vec<String>,
    pub(crate) transactions: Vec<String>,
}

impl Acknowledged {
    fn add(&mut self, round: u32, line: &str) {
        if let Some(n) = line.strip_suffix('.') {
            self.raw.push(format!("{round}-{n}"));
        } else if let Some(n) = line.strip_suffix(';') {
            self.transactions.push(format!("{round}-{n}"));
        }
    }
}

/// The store's directory, two levels below what is there before.
const STORE: &str = "above/store";

/// Compiles the shim into a directory.
fn shim(dir: &Path) -> PathBuf {
    let library = dir.join("shim.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/power_loss/shim.c");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o"]).args([&library, &source]);
    assert!(cc.status().expect("a C compiler, which the set-up asks for").success());
    library
}

impl Recording {
    /// Lets the writer live in `dir`, where its files are left.
    pub(crate) fn of(dir: &Path, mode: CompletionMode, habits: Habits, lives: &[Life]) -> Self {
        let dir = fs::canonicalize(dir).unwrap();
        let (root, journal, shim) = (dir.join("root"), dir.join("journal"), shim(&dir));
        fs::create_dir(&root).unwrap();
        for (round, life) in lives.iter().enumerate() {
            let mut writer = Command::new(env!("CARGO_BIN_EXE_crash-writer"));
            writer.arg(root.join(STORE)).args([mode.to_string(), round.to_string()]);
            writer.arg(format!("log-gc-entries={}", habits.log_gc_entries));
            writer.arg(format!("value-bytes={}", habits.value_bytes));
            writer.arg(format!("raft-log={}", habits.raft_log));
            if !habits.split_keys.is_empty() {
                writer.arg(format!("split-keys={}", habits.split_keys.join(",")));
            }
            writer.env("LD_PRELOAD", &shim).env("POWER_LOSS_ROOT", &root);
            writer.env("POWER_LOSS_JOURNAL", &journal).stdout(Stdio::null());
            let code = match life {
                Life::Closes { numbers } => {
                    writer.arg(format!("numbers={numbers}"));
                    0
                }
                Life::IsKilled { events } => {
                    writer.env("POWER_LOSS_EVENTS", events.to_string());
                    137
                }
            };
            assert_eq!(writer.status().unwrap().code(), Some(code), "round {round}");
        }
        Self { mode, habits, journal: fs::read(&journal).unwrap(), root }
    }

    pub(crate) fn events(&self) -> Vec<Event<'_>> {
        events(&self.journal)
    }

    /// The disk, and what was acknowledged, once these events have happened.
    pub(crate) fn at<'a, 'f>(
        &self,
        events: &[Event<'a>],
        reaches: Reaches<'f>,
    ) -> (Disk<'a, 'f>, Acknowledged) {
        let mut disk = Disk::new(&self.root, reaches);
        let mut acknowledged = Acknowledged::default();
        let mut lives = 0;
        for event in events {
            disk.apply(event);
            match event {
                Event::Start => lives += 1,
                Event::Mark(lines) => lines.lines().for_each(|line| acknowledged.add(lives - 1, line)),
                _ => {}
            }
        }
        (disk, acknowledged)
    }

    /// Rebuilds in `dir` what a power loss leaves after these events, opens it and checks it.
    ///
    /// # Errors
    /// What is lost, or why the store does not open.
    pub(crate) fn check(
        &self,
        events: &[Event<'_>],
        reaches: Reaches<'_>,
        loss: Loss,
        dir: &Path,
    ) -> Result<(), String> {
        let (disk, acknowledged) = self.at(events, reaches);
        write_tree(&survivors(&disk, loss), dir).unwrap();
        let mut config = config(self.mode, &dir.join(STORE));
        config.log_gc_entries = self.habits.log_gc_entries;
        config.raft_log = self.habits.raft_log;
        config.split_keys = self.habits.split_keys();
        let storage = Storage::open(config).map_err(|error| format!("does not open: {error}"))?;
        self.check_contents(&storage, &acknowledged)?;
        let goes_on = storage.raw_put(b"again", b"v").is_applied()
            && storage.raw_get(b"again").into_result() == Ok(Some(b"v".to_vec()));
        if goes_on { Ok(()) } else { Err("does not go on".to_owned()) }
    }

    fn check_contents(&self, storage: &Storage, acknowledged: &Acknowledged) -> Result<(), String> {
        let now = storage.begin().into_result().map_err(|error| error.to_string())?;
        let (raw, left, right) = (raw(storage), half(&now, "a"), half(&now, "b"));
        if left != right {
            return Err(format!("a transaction is half done: {} and {} keys", left.len(), right.len()));
        }
        let value_bytes = self.habits.value_bytes;
        let is_right = |name: &String, value: &Vec<u8>| format!("{name:.<value_bytes$}").as_bytes() == value;
        if let Some((name, _)) = raw.iter().find(|(name, value)| !is_right(name, value)) {
            return Err(format!("raw key {name} has another value"));
        }
        if let Some((name, _)) = left.iter().find(|(name, value)| name.as_bytes() != *value) {
            return Err(format!("key {name} has another value"));
        }
        let lost_raw = acknowledged.raw.iter().find(|name| !raw.contains_key(*name));
        let lost = acknowledged.transactions.iter().find(|name| !left.contains_key(*name));
        match (lost_raw, lost) {
            (None, None) => Ok(()),
            (Some(name), _) => Err(format!("acknowledged raw key {name} is lost")),
            (_, Some(name)) => Err(format!("acknowledged transaction {name} is lost")),
        }
    }
}

/// All raw keys of the writer with their values, by the name behind their prefix.
fn raw(storage: &Storage) -> BTreeMap<String, Vec<u8>> {
    pages("raw-", |start_key, end_key| {
        let scan = RawScan { start_key, end_key, limit: 10_000, reverse: false, key_only: false };
        storage.execute(scan).into_result().unwrap()
    })
}

/// All keys of one half of the transactions.
fn half(now: &Transaction, half: &str) -> BTreeMap<String, Vec<u8>> {
    pages(&format!("{half}-"), |start, end| now.scan(&start, &end, 10_000).unwrap())
}

fn pages(prefix: &str, scan: impl Fn(Vec<u8>, Vec<u8>) -> Vec<KvPair>) -> BTreeMap<String, Vec<u8>> {
    let end = prefix.replace('-', ".").into_bytes();
    let mut start = prefix.as_bytes().to_vec();
    let mut all = BTreeMap::new();
    loop {
        let page = scan(start.clone(), end.clone());
        let Some(last) = page.last() else { return all };
        start = [last.key.as_slice(), b"\0"].concat();
        let named = |key: &[u8]| String::from_utf8(key[prefix.len()..].to_vec()).unwrap();
        all.extend(page.into_iter().map(|pair| (named(&pair.key), pair.value)));
    }
}
