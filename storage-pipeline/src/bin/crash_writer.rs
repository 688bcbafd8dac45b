//! Writes until it is killed and prints each acknowledged number: the victim of the crash tests.
//!
//! `crash-writer DIR MODE ROUND [raft-log=NAME] [numbers=N] [log-gc-entries=N] [value-bytes=N]`. Number `n` stands for a raw
//! key and for a transaction of two keys, each with the value `ROUND-n`, the raw one filled up with dots to the length that is asked
//! for; a line `n.` is printed once the raw key is acknowledged, a line `n;` once the transaction is too. With `numbers` it
//! closes the store behind so many.

use std::{
    env,
    error::Error,
    io::Write,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use storage_pipeline::{Config, Storage};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().skip(1).collect();
    let [dir, mode, round, options @ ..] = args.as_slice() else {
        return Err("usage: crash-writer DIR MODE ROUND [NAME=VALUE]...".into());
    };
    let mut config = Config::new(dir);
    config.completion_mode = mode.parse()?;
    let (mut numbers, mut value_bytes) = (u64::MAX, 0);
    for option in options {
        let (name, value) = option.split_once('=').ok_or("an option is NAME=VALUE")?;
        match name {
            "raft-log" => config.raft_log = value.parse()?,
            "numbers" => numbers = value.parse()?,
            "log-gc-entries" => config.log_gc_entries = value.parse()?,
            "value-bytes" => value_bytes = value.parse()?,
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    let storage = Storage::open(config)?;
    say("open");
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= numbers || write(&storage, round, n, value_bytes).is_err() {
                        break;
                    }
                    say(&format!("{n};"));
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

/// One line at once, so that a kill tears at most the last.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever reads this is the one who kills; without a reader there is nothing to say.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
