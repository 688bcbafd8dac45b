//! Durable puts of the pipeline and of other stores on one file system, in one run with interleaved rounds: a Markdown
//! table of ratios to a bare RocksDB.

mod stores;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use benches::{
    closed_loop::{self, Rate},
    machine::Machine,
    program,
    round::Failure,
    stats::{compared, median},
};
use clap::Parser;
use indicatif::ProgressBar;

use crate::stores::{ALL, Kind, open};

/// Compare durable puts of several stores.
#[derive(Parser)]
#[command(name = "stores")]
struct Args {
    /// Seconds of each timed round.
    #[arg(long, default_value_t = 0.7)]
    secs: f64,
    /// Rounds of each store and number of clients.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Numbers of client threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 32])]
    clients: Vec<u64>,
    /// Bytes of a value.
    #[arg(long, default_value_t = 150)]
    value: usize,
    /// Where the stores go: a new directory is made in it and removed at the end.
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    program::end("stores", run(&Args::parse()))
}

fn run(args: &Args) -> Result<(), Failure> {
    let dir = program::data_dir(args.dir.as_deref())?;
    let Machine { processor, cores, system, commit, load, .. } = Machine::here();
    println!(
        "- Machine: {processor}, {cores} cores; {system}; load averages before: {load}. Commit {commit}."
    );
    println!("- {} rounds of {} s, interleaved; values of {} B.", args.rounds, args.secs, args.value);
    println!(
        "\n| store | clients | puts to bare RocksDB's | 99th percentile to bare RocksDB's |\n|---|---|---|---|"
    );
    let bar = ProgressBar::new((ALL.len() * args.rounds * args.clients.len()) as u64);
    // Each put is of a key of its own.
    let next = AtomicU64::new(0);
    for &clients in &args.clients {
        let mut rates = vec![Vec::new(); ALL.len()];
        for round in 0..args.rounds {
            for turn in 0..ALL.len() {
                let which = (turn + round) % ALL.len();
                // Only one has its files open at a time, so none pays for another's background work.
                let store = open(ALL[which], &dir.path().join(format!("{which}")))?;
                rates[which].push(closed_loop::rate(clients, Duration::from_secs_f64(args.secs), |_| {
                    let (value, store, next) = (vec![7; args.value], &store, &next);
                    // ORDERING: Relaxed: only the numbers matter.
                    move || store.put(&next.fetch_add(1, Ordering::Relaxed).to_be_bytes(), &value)
                })?);
                bar.inc(1);
            }
        }
        print(clients, &rates, &bar)?;
    }
    bar.finish_and_clear();
    Ok(())
}

fn print(clients: u64, rates: &[Vec<Rate>], bar: &ProgressBar) -> Result<(), Failure> {
    let puts: Vec<Vec<_>> = rates.iter().map(|of| of.iter().map(|rate| rate.per_second).collect()).collect();
    let tails: Vec<Vec<_>> = rates.iter().map(|of| of.iter().map(|rate| rate.p99).collect()).collect();
    let bare = ALL.iter().position(|kind| *kind == Kind::Rocks).ok_or("nothing to compare with")?;
    for (which, kind) in ALL.iter().enumerate() {
        let (puts, tails) =
            (compared(&puts[which], &puts[bare])?.marked(), compared(&tails[which], &tails[bare])?.marked());
        println!("| {kind} | {clients} | {puts} | {tails} |");
    }
    let (puts, tail) = (median(&puts[bare]), median(&tails[bare]));
    bar.println(format!("{clients} clients: bare RocksDB {puts:.0} puts/s, 99th percentile {tail:.0} us"));
    Ok(())
}
