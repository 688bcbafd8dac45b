//! Writes until it is killed and prints each acknowledged number: the victim of the crash tests.
//!
//! `crash-writer DIR MODE ROUND [raft-log=NAME] [numbers=N] [log-gc-entries=N] [value-bytes=N] [accounts=N] [split-keys=A,B]`. Number `n`
//! stands for a raw key and for a transaction of two keys, each with the value `ROUND-n`, the raw one filled up with dots to
//! the length that is asked for; a line `n.` is printed once the raw key is acknowledged, a line `n;` once the transaction is
//! too. With `numbers` it closes the store behind so many. With `accounts` it then counts a raw counter of the thread up
//! (`THREAD=VALUE`) and moves a coin from one account to another, with a record of that; where no other transfer was in
//! the way it prints `n$`.

use std::{
    env,
    error::Error,
    io::Write,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use storage_pipeline::{Config, Storage, TransactionError};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().skip(1).collect();
    let [dir, mode, round, options @ ..] = args.as_slice() else {
        return Err("usage: crash-writer DIR MODE ROUND [NAME=VALUE]...".into());
    };
    let mut config = Config::new(dir);
    config.completion_mode = mode.parse()?;
    let (mut numbers, mut value_bytes, mut accounts) = (u64::MAX, 0, 0);
    for option in options {
        let (name, value) = option.split_once('=').ok_or("an option is NAME=VALUE")?;
        match name {
            "raft-log" => config.raft_log = value.parse()?,
            "numbers" => numbers = value.parse()?,
            "log-gc-entries" => config.log_gc_entries = value.parse()?,
            "value-bytes" => value_bytes = value.parse()?,
            "accounts" => accounts = value.parse()?,
            "split-keys" => config.split_keys = value.split(',').map(|key| key.as_bytes().to_vec()).collect(),
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    let storage = Storage::open(config)?;
    say("open");
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (storage, next) = (&storage, &next);
            scope.spawn(move || {
                for count in 1.. {
                    // ORDERING: Relaxed; only uniqueness matters.
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= numbers || write(storage, round, n, value_bytes).is_err() {
                        break;
                    }
                    say(&format!("{n};"));
                    if accounts > 0 && bank(storage, round, n, (thread, count), accounts).is_err() {
                        break;
                    }
                }
            });
        }
    });
    Ok(())
}

fn write(storage: &Storage, round: &str, n: u64, value_bytes: usize) -> Result<(), Box<dyn Error>> {
    let value = format!("{round}-{n}");
    let raw = format!("{value:.<value_bytes$}");
    storage.raw_put(format!("raw-{round}-{n}").as_bytes(), raw.as_bytes()).into_result()?;
    say(&format!("{n}."));
    let mut transaction = storage.begin().into_result()?;
    transaction.insert(format!("a-{round}-{n}").as_bytes(), value.as_bytes());
    transaction.insert(format!("b-{round}-{n}").as_bytes(), value.as_bytes());
    transaction.commit()?;
    Ok(())
}

fn bank(
    storage: &Storage,
    round: &str,
    n: u64,
    (thread, count): (u64, u64),
    accounts: u64,
) -> Result<(), Box<dyn Error>> {
    let counter = format!("counter-{round}-{thread}");
    storage.raw_put(counter.as_bytes(), count.to_string().as_bytes()).into_result()?;
    say(&format!("{thread}={count}"));
    let (from, to) = (n % accounts, (n / accounts + n + 1) % accounts);
    let mut transfer = storage.begin().into_result()?;
    for (account, coins) in [(from, -1), (to, 1)] {
        let key = format!("account-{account}");
        let before = transfer
            .get(key.as_bytes())?
            .map_or(Ok(0), |coins| String::from_utf8_lossy(&coins).parse::<i64>())?;
        transfer.put(key.as_bytes(), (before + coins).to_string().as_bytes());
    }
    transfer.put(format!("moved-{round:0>4}-{n:06}").as_bytes(), format!("{from}>{to}").as_bytes());
    match transfer.commit() {
        Ok(_) => say(&format!("{n}$")),
        // Another transfer came first.
        Err(TransactionError::RolledBack(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// One line at once, so that a kill tears at most the last.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever reads this is the one who kills; without a reader there is nothing to say.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
