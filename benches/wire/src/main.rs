//! Durable puts over gRPC on loopback, in one run with interleaved rounds: nodes of the pipeline beside etcd's, and beside what
//! gRPC allows with a store in memory behind it. A Markdown table of ratios to etcd.

mod ceiling;
mod clients;
mod contenders;
mod etcd;
mod load;
mod servers;
mod store;
mod usage;

use std::{fs, net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use benches::{
    machine::Machine,
    program,
    round::Failure,
    stats::{compared, median},
};
use clap::{Parser, Subcommand};
use indicatif::ProgressBar;
use tokio::runtime::Runtime;

use crate::{
    contenders::{Contender, Kind},
    load::Round,
};

/// Compare durable puts over the wire.
#[derive(Parser)]
#[command(name = "wire")]
struct Args {
    #[command(subcommand)]
    job: Option<Job>,
    /// The pipeline's server: `cargo build --profile server -p storage-pipeline --features server` makes it.
    /// Several builds of it are compared with each other.
    #[arg(long, value_delimiter = ',', default_value = "target/server/storage-pipeline")]
    server: Vec<PathBuf>,
    /// What is compared.
    #[arg(long, value_delimiter = ',', default_values = ["ceiling", "ceiling-stream", "pipeline", "pipeline-stream", "etcd"])]
    of: Vec<Kind>,
    /// Nodes of a cluster.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 3])]
    nodes: Vec<u64>,
    /// Seconds of each timed round.
    #[arg(long, default_value_t = 1.0)]
    secs: f64,
    /// Rounds of each contender and number of clients.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Numbers of clients, each with a connection of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 16, 32, 128])]
    clients: Vec<u64>,
    /// Bytes of a value.
    #[arg(long, default_value_t = 150)]
    value: usize,
    /// Where the stores go: a new directory is made in it and removed at the end.
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Job {
    /// Be the server without a store, until killed.
    #[command(hide = true)]
    Ceiling { listen: SocketAddr },
}

fn main() -> ExitCode {
    program::end("wire", run(&Args::parse()))
}

fn run(args: &Args) -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    if let Some(Job::Ceiling { listen }) = args.job {
        return runtime.block_on(ceiling::serve(listen));
    }
    let Machine { processor, cores, system, commit, load, .. } = Machine::here();
    println!(
        "- Machine: {processor}, {cores} cores for clients and servers; {system}; load averages before: {load}."
    );
    println!(
        "- Commit {commit}. etcd: {}.",
        servers::etcd_version().unwrap_or_else(|| contenders::HOW_TO_GET_ETCD.to_owned())
    );
    println!("- {} rounds of {} s, interleaved; values of {} B.", args.rounds, args.secs, args.value);
    args.nodes.iter().try_for_each(|nodes| runtime.block_on(compare(args, *nodes)))
}

/// Measures clusters of so many nodes and prints their table.
async fn compare(args: &Args, nodes: u64) -> Result<(), Failure> {
    let dir = program::data_dir(args.dir.as_deref())?;
    let mut contenders = Vec::new();
    let builds =
        |kind| if matches!(kind, Kind::Pipeline | Kind::PipelineStream) { args.server.len() } else { 1 };
    for (kind, build) in args.of.iter().flat_map(|kind| (0..builds(*kind)).map(|build| (*kind, build))) {
        let dir = dir.path().join(format!("{kind:?}-{build}"));
        fs::create_dir(&dir)?;
        let started = Contender::start(kind, nodes, &args.server[build], &dir, builds(kind) > 1);
        contenders.extend(started.await?);
    }
    let base = contenders.iter().position(|contender| contender.kind == Kind::Etcd).unwrap_or(0);
    let base_name = &contenders.get(base).ok_or("nothing is there to be measured")?.name;
    let plural = if nodes == 1 { "" } else { "s" };
    println!(
        "\n## {nodes} node{plural}\n\n| clients | store | puts/s | average, us | 99th percentile, us | puts, ratio to {base_name} | 99th percentile, ratio to it | CPU of a put, us | switches of a put |\n|---|---|---|---|---|---|---|---|---|"
    );
    let bar = ProgressBar::new((contenders.len() * args.clients.len() * args.rounds) as u64);
    for &clients in &args.clients {
        let mut rounds: Vec<_> = contenders.iter().map(|_| Vec::new()).collect();
        for round in 0..args.rounds {
            for turn in 0..contenders.len() {
                let which = (turn + round) % contenders.len();
                let length = Duration::from_secs_f64(args.secs);
                rounds[which].push(contenders[which].round(clients, length, args.value).await?);
                bar.inc(1);
            }
        }
        bar.suspend(|| print(clients, &contenders, &rounds, base))?;
    }
    bar.finish_and_clear();
    if args.of.contains(&Kind::Etcd) && !contenders.iter().any(|contender| contender.kind == Kind::Etcd) {
        println!("| - | etcd | {} | | | | | | |", contenders::HOW_TO_GET_ETCD);
    }
    Ok(())
}

fn print(clients: u64, contenders: &[Contender], rounds: &[Vec<Round>], base: usize) -> Result<(), Failure> {
    let of = |which: usize, figure: fn(&Round) -> f64| rounds[which].iter().map(figure).collect::<Vec<_>>();
    let puts = |which| of(which, |round| round.rate.per_second);
    let tails = |which| of(which, |round| round.rate.p99);
    for (which, contender) in contenders.iter().enumerate() {
        println!(
            "| {clients} | {} | {:.0} | {:.0} | {:.0} | {} | {} | {:.1} | {:.2} |",
            contender.name,
            median(&puts(which)),
            median(&of(which, |round| round.rate.average)),
            median(&tails(which)),
            compared(&puts(which), &puts(base))?.marked(),
            compared(&tails(which), &tails(base))?.marked(),
            median(&of(which, |round| round.used.cpu_us)),
            median(&of(which, |round| round.used.switches))
        );
    }
    Ok(())
}
