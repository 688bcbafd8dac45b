//! Writes until it is killed and prints each acknowledged number: the victim of the crash tests.
//!
//! `crash-writer DIR MODE ROUND [RAFT-LOG]`. Number `n` stands for a raw key and for a transaction of two keys, each
//! with the value `ROUND-n`; a line `n;` is printed once both are acknowledged.

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
    let [dir, mode, round, log @ ..] = args.as_slice() else {
        return Err("usage: crash-writer DIR MODE ROUND [RAFT-LOG]".into());
    };
    let mut config = Config::new(dir);
    if let Some(log) = log.first() {
        config.raft_log = log.parse()?;
    }
    config.completion_mode = mode.parse()?;
    let storage = Storage::open(config)?;
    say("open");
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Ok(n) = write(&storage, round, next.fetch_add(1, Ordering::Relaxed)) {
                    say(&format!("{n};"));
                }
            });
        }
    });
    Ok(())
}

fn write(storage: &Storage, round: &str, n: u64) -> Result<u64, Box<dyn Error>> {
    let value = format!("{round}-{n}");
    storage.raw_put(format!("raw-{round}-{n}").as_bytes(), value.as_bytes()).into_result()?;
    let mut transaction = storage.begin().into_result()?;
    transaction.insert(format!("a-{round}-{n}").as_bytes(), value.as_bytes());
    transaction.insert(format!("b-{round}-{n}").as_bytes(), value.as_bytes());
    transaction.commit()?;
    Ok(n)
}

/// One line at once, so that a kill tears at most the last.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever reads this is the one who kills; without a reader there is nothing to say.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
