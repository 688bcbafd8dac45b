//! Raw puts beside the limit: a bare RocksDB with synced puts and its own group commit, on the same file system, rounds
//! interleaved. Prints the ratio of the pipeline's QPS to the bare one's for each number of clients, mode and kind of
//! raft log.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use benches::{
    bare::Bare,
    closed_loop, program,
    round::Failure,
    stages::{STAGES, Stages},
    stats::{compared, median},
};
use clap::Parser;
use storage_pipeline::{CompletionMode, Config, RaftLog, Storage, observe::Observe, storage::Parts};

/// Compare the pipeline's raw puts with a bare RocksDB's synced puts.
#[derive(Parser)]
#[command(name = "speed")]
struct Args {
    /// Seconds of each timed round.
    #[arg(long, default_value_t = 1.0)]
    secs: f64,
    /// Rounds of each contender and number of clients.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Numbers of client threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32])]
    threads: Vec<u64>,
    /// Completion modes.
    #[arg(long, value_delimiter = ',', default_values_t = CompletionMode::ALL)]
    modes: Vec<CompletionMode>,
    /// Kinds of raft log.
    #[arg(long, value_delimiter = ',', default_values_t = [RaftLog::default()])]
    logs: Vec<RaftLog>,
    /// Bytes of a value.
    #[arg(long, default_value_t = 150)]
    value: usize,
    /// Microseconds that threads stay awake for a lone writer, at most; the pipeline's default where it is not given.
    #[arg(long)]
    stay_awake_us: Option<u64>,
    /// Show where the time of a lone client's put goes, stage by stage, from rounds besides the compared ones.
    #[arg(long)]
    stages: bool,
    /// Where the data goes: a new directory is made in it and removed at the end.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// One put of a numbered key.
type Put<'a> = &'a (dyn Fn(u64, &[u8]) -> Result<(), Failure> + Sync);

fn main() -> ExitCode {
    program::end("speed", run(&Args::parse()))
}

fn run(args: &Args) -> Result<(), Failure> {
    let dir = program::data_dir(args.dir.as_deref())?;
    let next = AtomicU64::new(0);
    let contenders: Vec<_> =
        args.modes.iter().flat_map(|mode| args.logs.iter().map(|log| (*mode, *log))).collect();
    for &clients in &args.threads {
        let mut bare_qps = Vec::new();
        let mut qps = vec![Vec::new(); contenders.len()];
        let stages: Vec<_> = contenders.iter().map(|_| Arc::new(Stages::default())).collect();
        for round in 0..args.rounds {
            // Only one contender has its files open at a time, so none pays for another's background work.
            bare_qps.push(bare(&dir.path().join("bare"), args, clients, &next)?);
            for turn in 0..contenders.len() {
                let which = (turn + round) % contenders.len();
                qps[which].push(pipeline(dir.path(), contenders[which], args, clients, &next, None)?);
                if args.stages && clients == 1 {
                    pipeline(dir.path(), contenders[which], args, clients, &next, Some(&stages[which]))?;
                }
            }
        }
        println!(
            "{clients} clients: bare RocksDB {:.0} puts/s (median of {} rounds)",
            median(&bare_qps),
            args.rounds
        );
        for ((mode, log), own) in contenders.iter().zip(&qps) {
            print!("  {mode:<25} {log:<12} {:>7.0} puts/s", median(own));
            print!(", to bare {}", compared(own, &bare_qps)?);
            // The same mode on the first kind of log.
            let first = contenders.iter().position(|(other, _)| other == mode).unwrap_or(0);
            if args.logs.len() > 1 {
                print!(", to {} {}", args.logs[0], compared(own, &qps[first])?);
            }
            println!();
        }
        if args.stages && clients == 1 {
            print_stages(&contenders, &stages);
        }
    }
    Ok(())
}

/// A column for each contender: the median of each stage, and its mean.
fn print_stages(contenders: &[(CompletionMode, RaftLog)], stages: &[Arc<Stages>]) {
    let figures: Vec<_> = stages.iter().map(|stages| stages.figures()).collect();
    println!("where a lone put's time goes: microseconds until it is ..., median (mean)");
    print!("  {:<34}", "");
    contenders.iter().for_each(|(mode, log)| print!("  {mode} {log}"));
    println!();
    for (at, stage) in STAGES.iter().enumerate() {
        print!("  {stage:<34}");
        for ((mode, log), figures) in contenders.iter().zip(&figures) {
            let width = mode.to_string().len() + log.to_string().len() + 1;
            let shown = figures.map(|stages| format!("{:.1} ({:.1})", stages[at].median, stages[at].mean));
            print!("  {:>width$}", shown.as_deref().unwrap_or("-"));
        }
        println!();
    }
}

fn bare(dir: &Path, args: &Args, clients: u64, next: &AtomicU64) -> Result<f64, Failure> {
    let bare = Bare::open(dir)?;
    timed(args, clients, next, &|key, value| bare.put(&key.to_be_bytes(), value))
}

fn pipeline(
    dir: &Path,
    (mode, log): (CompletionMode, RaftLog),
    args: &Args,
    clients: u64,
    next: &AtomicU64,
    stages: Option<&Arc<Stages>>,
) -> Result<f64, Failure> {
    let mut config = Config::new(dir.join(format!("{mode} {log}")));
    config.completion_mode = mode;
    if let Some(micros) = args.stay_awake_us {
        config.stay_awake = Duration::from_micros(micros);
    }
    config.raft_log = log;
    let Some(stages) = stages else {
        let storage = Storage::open(config)?;
        return timed(args, clients, next, &|key, value| {
            Ok(storage.raw_put(&key.to_be_bytes(), value).into_result()?)
        });
    };
    let parts = Parts::on_disk_with(&config.dir, config.raft_log)?;
    let observe: Arc<dyn Observe> = Arc::<Stages>::clone(stages);
    let storage = Storage::open_with(config, parts, Some(observe))?;
    timed(args, clients, next, &|key, value| {
        let began = Instant::now();
        storage.raw_put(&key.to_be_bytes(), value).into_result()?;
        stages.ended(began);
        Ok(())
    })
}

/// Puts per second of a number of clients, each of the next numbered key.
fn timed(args: &Args, clients: u64, next: &AtomicU64, put: Put<'_>) -> Result<f64, Failure> {
    let rate = closed_loop::rate(clients, Duration::from_secs_f64(args.secs), |_| {
        let value = vec![7; args.value];
        move || put(next.fetch_add(1, Ordering::Relaxed), &value)
    })?;
    Ok(rate.per_second)
}
