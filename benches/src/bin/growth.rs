//! How the cost of a put and of a read grows with keys, values and regions: a Markdown page of ratios from one run with
//! interleaved rounds.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use benches::{
    growth::{AXES, Axis, Contender, Operation, Round},
    machine::Machine,
    program,
    round::Failure,
    stats::{compared, median},
};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use storage_pipeline::CompletionMode;

/// Measure what growth costs.
#[derive(Parser)]
#[command(name = "growth")]
struct Args {
    /// Seconds of each timed round.
    #[arg(long, default_value_t = 0.5)]
    secs: f64,
    /// Rounds of each size, operation and number of clients.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Numbers of client threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32])]
    clients: Vec<u64>,
    /// The completion mode.
    #[arg(long, default_value_t = CompletionMode::default())]
    mode: CompletionMode,
    /// What grows.
    #[arg(long, value_delimiter = ',', default_values_t = AXES.map(|axis| axis.name.to_owned()))]
    of: Vec<String>,
    /// Sizes with more keys are left out.
    #[arg(long, default_value_t = u64::MAX)]
    most_keys: u64,
    /// Where the stores go, about 6 GB in all: a new directory is made in it and removed at the end.
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    program::end("growth", run(&Args::parse()))
}

fn run(args: &Args) -> Result<(), Failure> {
    let Machine { processor, cores, system, versions, commit, load } = Machine::here();
    println!("- Machine: {processor}, {cores} cores; {system}; load averages before: {load}.");
    println!("- Versions: {}. Commit {commit}.", versions.join(", "));
    println!("- {} rounds of {} s, sizes interleaved; {}.", args.rounds, args.secs, args.mode);
    if let Some(unknown) = args.of.iter().find(|of| !AXES.iter().any(|axis| axis.name == **of)) {
        return Err(format!("nothing grows that is called {unknown}").into());
    }
    for axis in AXES.into_iter().filter(|axis| args.of.iter().any(|of| of == axis.name)) {
        measure(args, &axis)?;
    }
    Ok(())
}

/// One size: what the pipeline does, and what the bare RocksDB does with the same keys.
struct Pair {
    pipeline: Contender,
    bare: Contender,
}

/// Measures everything of an axis and prints its table.
fn measure(args: &Args, axis: &Axis) -> Result<(), Failure> {
    let dir = program::data_dir(args.dir.as_deref())?;
    let sizes: Vec<_> = axis.sizes.into_iter().filter(|size| size.keys <= args.most_keys).collect();
    if sizes.is_empty() {
        return Ok(());
    }
    let bar = progress(axis, sizes.len() * (1 + axis.operations.len() * args.clients.len() * args.rounds));
    let mut pairs = Vec::new();
    for (at, size) in sizes.iter().enumerate() {
        pairs.push(Pair {
            pipeline: Contender::load(dir.path(), &format!("pipeline-{at}"), *size, Some(args.mode))?,
            bare: Contender::load(dir.path(), &format!("bare-{at}"), *size, None)?,
        });
        bar.inc(1);
    }
    println!("\n## More {}\n", axis.name);
    println!(
        "| size | operation | clients | of bare RocksDB, same size | of the pipeline's smallest | of the bare one's smallest |"
    );
    println!("|---|---|---|---|---|---|");
    for &operation in axis.operations {
        for &clients in &args.clients {
            let rates = rounds(args, &pairs, operation, clients, &bar)?;
            for (size, [own, bare]) in sizes.iter().zip(&rates) {
                println!(
                    "| {size} | {operation} | {clients} | {} | {} | {} |",
                    compared(own, bare)?.marked(),
                    compared(own, &rates[0][0])?.marked(),
                    compared(bare, &rates[0][1])?.marked()
                );
            }
            let [own, bare] = &rates[0];
            bar.println(format!("smallest: {:.0} {operation}/s, bare {:.0}", median(own), median(bare)));
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// Rates of the pipeline and of the bare store, for each size: one of each a round.
fn rounds(
    args: &Args,
    pairs: &[Pair],
    operation: Operation,
    clients: u64,
    bar: &ProgressBar,
) -> Result<Vec<[Vec<f64>; 2]>, Failure> {
    let length = Duration::from_secs_f64(args.secs);
    let mut rates = vec![[Vec::new(), Vec::new()]; pairs.len()];
    for round in 0..args.rounds {
        for turn in 0..pairs.len() {
            let which = (turn + round) % pairs.len();
            let Pair { pipeline, bare } = &pairs[which];
            let round = Round { operation, clients, length, seed: round as u64 };
            rates[which][0].push(pipeline.rate(&round)?);
            rates[which][1].push(bare.rate(&round)?);
            bar.inc(1);
        }
    }
    Ok(rates)
}

fn progress(axis: &Axis, steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(axis.name);
    bar
}
