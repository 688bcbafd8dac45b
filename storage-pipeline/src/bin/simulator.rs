//! Simulates clusters: one seed with its trace, a row of seeds, fresh seeds for a time, or seeds until each planted fault
//! is found. `make sim` runs it.

use std::{
    collections::BTreeMap,
    env,
    num::NonZero,
    process::ExitCode,
    str::FromStr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use storage_pipeline::simulator::{Failure, Options, Planted, Report, run};

const USAGE: &str = "usage: simulator [--seed N [--trace]] [--seeds COUNT [--from N]] [--secs N] \
                     [--planted FAULT|all] [--at-most COUNT]";

/// What is asked for.
struct Args {
    from: Option<u64>,
    seeds: u64,
    secs: Option<u64>,
    trace: bool,
    planted: Vec<Planted>,
    /// Seeds after which a planted fault counts as not found.
    at_most: u64,
}

fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(error) => {
            eprintln!("simulator: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // What panics inside a cluster is reported as a failure of its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let found = if args.planted.is_empty() || args.trace { storm(&args) } else { bites(&args) };
    if found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse() -> Result<Args, String> {
    let mut args =
        Args { from: None, seeds: 0, secs: None, trace: false, planted: Vec::new(), at_most: 2000 };
    let mut given = env::args().skip(1);
    while let Some(flag) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--seed" => (args.from, args.seeds) = (Some(number(&value()?)?), 1),
            "--from" => args.from = Some(number(&value()?)?),
            "--seeds" => args.seeds = number(&value()?)?,
            "--secs" => args.secs = Some(number(&value()?)?),
            "--at-most" => args.at_most = number(&value()?)?,
            "--trace" => args.trace = true,
            "--planted" => {
                let name = value()?;
                match name.as_str() {
                    "all" => args.planted = Planted::ALL.to_vec(),
                    _ => args.planted.push(Planted::from_str(&name).map_err(|error| error.to_string())?),
                }
            }
            _ => return Err(format!("{flag} is not known")),
        }
    }
    if args.seeds == 0 && args.secs.is_none() && args.planted.is_empty() {
        return Err("say how many seeds, or how long".to_owned());
    }
    Ok(args)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

/// Runs seeds until there have been enough, or the time is up, or one fails.
fn storm(args: &Args) -> bool {
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    let first = args.from.unwrap_or_else(fresh);
    let started = Instant::now();
    let is_over = |done: u64| match args.secs {
        Some(secs) => {
            started.elapsed() >= Duration::from_secs(secs) || (args.seeds > 0 && done >= args.seeds)
        }
        None => done >= args.seeds,
    };
    let (next, total, failed) = (AtomicU64::new(0), Mutex::new(Total::default()), AtomicBool::new(false));
    in_parallel(|| {
        loop {
            // ORDERING: numbers of seeds and a flag that only ends the loop; the totals are behind their lock.
            let done = next.fetch_add(1, Ordering::Relaxed);
            if is_over(done) || failed.load(Ordering::Relaxed) {
                return;
            }
            let planted = args.planted.first().copied();
            match run(&Options { trace: args.trace, planted, ..Options::seed(first.wrapping_add(done)) }) {
                Ok(report) => total.lock().expect("no thread panics").add(&report),
                Err(failure) => {
                    failed.store(true, Ordering::Relaxed);
                    report_failure(&failure);
                }
            }
        }
    });
    let failed = failed.into_inner();
    if !failed {
        total.into_inner().expect("no thread panics").print(first, started.elapsed());
    }
    !failed
}

/// Runs this once on each processor.
fn in_parallel(work: impl Fn() + Sync) {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..processors).for_each(|_| drop(scope.spawn(&work))));
}

fn report_failure(failure: &Failure) {
    failure.trace.iter().for_each(|line| println!("{line}"));
    println!("seed {} fails: {failure}", failure.seed);
}

/// Runs seeds until each planted fault is found.
fn bites(args: &Args) -> bool {
    let first = args.from.unwrap_or(1);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    in_parallel(|| {
        // ORDERING: numbers of faults; what is found is behind its lock.
        while let Some(&planted) = args.planted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let failure = (first..first + args.at_most)
                .find_map(|seed| run(&Options { planted: Some(planted), ..Options::seed(seed) }).err());
            found.lock().expect("no thread panics").insert(planted, failure);
        }
    });
    let found = found.into_inner().expect("no thread panics");
    println!("| planted fault | found after seeds | as a violation of |\n|---|---|---|");
    for (planted, failure) in &found {
        match failure {
            Some(failure) => {
                println!("| `{planted}` | {} | {} |", failure.seed - first + 1, failure.invariant);
            }
            None => println!("| `{planted}` | not within {} | |", args.at_most),
        }
    }
    let missed = found.values().filter(|failure| failure.is_none()).count();
    println!("planted: {} passed, {missed} failed", found.len() - missed);
    missed == 0
}

/// What all runs came to.
#[derive(Default)]
struct Total {
    seeds: u64,
    steps: u64,
    commands: usize,
    transactions: usize,
    virtual_time: Duration,
    lost: u64,
    doubled: u64,
    snapshots: u64,
    faults: BTreeMap<&'static str, u64>,
    clusters: BTreeMap<(u64, String), u64>,
    regions: BTreeMap<usize, u64>,
}

impl Total {
    fn add(&mut self, report: &Report) {
        report.trace.iter().for_each(|line| println!("{line}"));
        self.seeds += 1;
        self.steps += report.steps;
        self.commands += report.raw_commands;
        self.transactions += report.transactions;
        self.virtual_time += report.virtual_time;
        self.lost += report.messages_lost;
        self.doubled += report.messages_doubled;
        self.snapshots += report.snapshots;
        report.faults.iter().for_each(|(kind, count)| *self.faults.entry(kind).or_default() += count);
        *self.clusters.entry((report.replicas, report.mode.to_string())).or_default() += 1;
        *self.regions.entry(report.regions).or_default() += 1;
    }

    fn print(&self, first: u64, took: Duration) {
        println!("seeds: {} passed, 0 failed", self.seeds);
        println!(
            "from {first}; {} steps in {:.0} s of the clusters' time and {:.0} s of this machine's; {} raw commands, {} transactions",
            self.steps,
            self.virtual_time.as_secs_f64(),
            took.as_secs_f64(),
            self.commands,
            self.transactions
        );
        let faults: Vec<_> = self.faults.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        println!(
            "{}; {} messages lost, {} doubled; {} snapshots installed",
            faults.join(", "),
            self.lost,
            self.doubled,
            self.snapshots
        );
        let clusters =
            self.clusters.iter().map(|((replicas, mode), count)| format!("{count} x {replicas} {mode}"));
        let regions = self.regions.iter().map(|(regions, count)| format!("{count} of {regions} regions"));
        println!(
            "clusters: {}; {}",
            clusters.collect::<Vec<_>>().join(", "),
            regions.collect::<Vec<_>>().join(", ")
        );
    }
}
