//! kill -9 at moments of chance, under load: every acknowledged write is there afterwards, no transaction is half done,
//! no account has money that another one lacks, and the next life goes on from there.

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use storage_pipeline::{CompletionMode, Config, RaftLog, Storage, Transaction};

use crate::support::{PATIENCE, config, in_every_mode};

const ACCOUNTS: u64 = 8;

/// What a child printed before it was killed.
#[derive(Debug, Default)]
struct Acknowledged {
    numbers: Vec<u64>,
    transfers: Vec<u64>,
    /// The last value of each raw counter.
    counters: BTreeMap<String, u64>,
}

impl Acknowledged {
    fn add(&mut self, line: &str) {
        if let Some(n) = line.strip_suffix(';') {
            self.numbers.push(n.parse().unwrap());
        } else if let Some(n) = line.strip_suffix('$') {
            self.transfers.push(n.parse().unwrap());
        } else if let Some((counter, value)) = line.split_once('=') {
            self.counters.insert(counter.to_owned(), value.parse().unwrap());
        }
    }
}

/// Lets a child write for as long as it lives.
fn acknowledged(config: &Config, round: u64, life: Duration) -> Acknowledged {
    let (dir, mode, log) = (&config.dir, config.completion_mode, config.raft_log);
    let mut child = Command::new(env!("CARGO_BIN_EXE_crash-writer"))
        .arg(dir)
        .args([mode.to_string(), round.to_string(), format!("raft-log={log}")])
        .args([format!("accounts={ACCOUNTS}"), format!("log-gc-entries={}", config.log_gc_entries)])
        .args(split_keys(config))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut line = String::new();
        // A last line without its end was torn by the kill.
        while out.read_line(&mut line).is_ok() && line.ends_with('\n') {
            sender.send(line.trim_end().to_owned()).unwrap();
            line.clear();
        }
    });
    assert_eq!(receiver.recv_timeout(PATIENCE).unwrap(), "open");
    thread::sleep(life);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    let mut acknowledged = Acknowledged::default();
    receiver.try_iter().for_each(|line| acknowledged.add(&line));
    acknowledged
}

/// What tells a child where its store is split.
pub(crate) fn split_keys(config: &Config) -> Option<String> {
    let keys =
        config.split_keys.iter().map(|key| String::from_utf8(key.clone()).unwrap()).collect::<Vec<_>>();
    (!keys.is_empty()).then(|| format!("split-keys={}", keys.join(",")))
}

#[test]
fn kill_9_loses_no_acknowledged_write_and_leaves_no_transaction_half_done() {
    // More of them in the long stage, each time at other moments.
    let rounds = env::var("KILL_ROUNDS").map_or(2, |rounds| rounds.parse().expect("a number of rounds"));
    let seed = env::var("KILL_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    in_every_mode(|mode, dir| {
        // What keeps the log knows no modes: one of them is enough for the kinds that are not the default.
        let kinds = if mode == CompletionMode::default() { RaftLog::ALL } else { &[RaftLog::RocksDb] };
        for kind in kinds {
            let mut config = config(mode, &dir.join(kind.name()));
            config.raft_log = *kind;
            config.log_gc_entries = 100;
            kill_and_check(&config, rounds, seed + mode as u64);
            if mode == CompletionMode::default() {
                config.dir = dir.join(format!("{}-in-regions", kind.name()));
                // Accounts of both sides of the first one, and the halves of the others, are in two regions.
                config.split_keys = ["account-4", "b", "raw-"].map(|key| key.as_bytes().to_vec()).to_vec();
                kill_and_check(&config, rounds, seed);
            }
        }
    });
}

fn kill_and_check(config: &Config, rounds: u64, seed: u64) {
    let mut total = 0;
    let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    // On a machine that is short of time the child may be killed before it wrote anything, so there may be more of them.
    for round in 0..rounds + 60 {
        if round >= rounds && total > 0 {
            break;
        }
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let life = Duration::from_micros(20_000 + dice % 150_000);
        let acknowledged = acknowledged(config, round, life);
        let storage = Storage::open(config.clone()).unwrap();
        let now = storage.begin().into_result().unwrap();
        check_numbers(&storage, &now, round, &acknowledged.numbers);
        for (counter, value) in &acknowledged.counters {
            let stored =
                storage.raw_get(format!("counter-{round}-{counter}").as_bytes()).into_result().unwrap();
            let stored = String::from_utf8(stored.expect("the counter is there")).unwrap();
            assert!(
                stored.parse::<u64>().unwrap() >= *value,
                "counter {counter} fell from {value} to {stored}"
            );
        }
        check_bank(&now, round, &acknowledged.transfers);
        total += acknowledged.numbers.len();
    }
    assert!(total > 0, "seed {seed}: the child was killed before it wrote anything, in every round");
}

fn check_numbers(storage: &Storage, now: &Transaction, round: u64, numbers: &[u64]) {
    for n in numbers {
        let value = Some(format!("{round}-{n}").into_bytes());
        assert_eq!(storage.raw_get(format!("raw-{round}-{n}").as_bytes()).into_result().unwrap(), value);
        for half in ["a", "b"] {
            assert_eq!(now.get(format!("{half}-{round}-{n}").as_bytes()).unwrap(), value);
        }
    }
    for n in 0..numbers.len() as u64 + 64 {
        let halves = ["a", "b"].map(|half| now.get(format!("{half}-{round}-{n}").as_bytes()).unwrap());
        assert_eq!(halves[0], halves[1], "transaction {n} is half done");
    }
}

/// Every transfer moves one coin and leaves a record, so the records of all rounds explain every balance.
fn check_bank(now: &Transaction, round: u64, acknowledged: &[u64]) {
    for n in acknowledged {
        let record = now.get(format!("moved-{round:04}-{n:06}").as_bytes()).unwrap();
        assert!(record.is_some(), "transfer {n} of round {round} is lost");
    }
    let mut coins = BTreeMap::<String, i64>::new();
    for record in now.scan(b"moved-", b"moved.", usize::MAX).unwrap() {
        let record = String::from_utf8(record.value).unwrap();
        let (from, to) = record.split_once('>').unwrap();
        *coins.entry(format!("account-{from}")).or_default() -= 1;
        *coins.entry(format!("account-{to}")).or_default() += 1;
    }
    for account in (0..ACCOUNTS).map(|account| format!("account-{account}")) {
        let balance = now.get(account.as_bytes()).unwrap();
        let balance = balance.map_or(0, |coins| String::from_utf8(coins).unwrap().parse::<i64>().unwrap());
        assert_eq!(balance, coins.get(&account).copied().unwrap_or(0), "{account} after round {round}");
    }
}
