//! Durable puts over gRPC on loopback, in one run with interleaved rounds: nodes of the pipeline beside etcd's, and beside what
//! gRPC allows with a store in memory behind it. A Markdown table of ratios to etcd.

mod ceiling;
mod clients;
mod contenders;
mod etcd;
mod load;
mod servers;
mod store;

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use benches::{
    closed_loop::Rate,
    machine::Machine,
    program,
    round::Failure,
    stats::{compared, median},
};
use clap::{Parser, Subcommand};
use indicatif::ProgressBar;
use tokio::runtime::Runtime;

use crate::contenders::{Contender, Kind};

/// Compare durable puts over the wire.
#[derive(Parser)]
#[command(name = "wire")]
struct Args {
    #[command(subcommand)]
    job: Option<Job>,
    /// The pipeline's server: `cargo build --release -p storage-pipeline --features server` makes it.
    #[arg(long, default_value = "target/release/storage-pipeline")]
    server: PathBuf,
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
    for kind in Kind::ALL {
        if let Some(contender) = Contender::start(kind, nodes, &args.server, dir.path()).await? {
            contenders.push(contender);
        }
    }
    let base = contenders.iter().position(|contender| contender.kind == Kind::Etcd).unwrap_or(0);
    let (plural, base_kind) = (if nodes == 1 { "" } else { "s" }, contenders[base].kind);
    println!(
        "\n## {nodes} node{plural}\n\n| clients | store | puts/s | 99th percentile, us | puts, ratio to {base_kind} | 99th percentile, ratio to it |\n|---|---|---|---|---|---|"
    );
    let bar = ProgressBar::new((contenders.len() * args.clients.len() * args.rounds) as u64);
    for &clients in &args.clients {
        let mut rates = vec![Vec::new(); contenders.len()];
        for round in 0..args.rounds {
            for turn in 0..contenders.len() {
                let which = (turn + round) % contenders.len();
                let length = Duration::from_secs_f64(args.secs);
                rates[which].push(contenders[which].round(clients, length, args.value).await?);
                bar.inc(1);
            }
        }
        bar.suspend(|| print(clients, &contenders, &rates, base))?;
    }
    bar.finish_and_clear();
    if !contenders.iter().any(|contender| contender.kind == Kind::Etcd) {
        println!("| - | etcd | {} | | | |", contenders::HOW_TO_GET_ETCD);
    }
    Ok(())
}

fn print(clients: u64, contenders: &[Contender], rates: &[Vec<Rate>], base: usize) -> Result<(), Failure> {
    let figures = |which: usize| {
        let puts: Vec<_> = rates[which].iter().map(|rate| rate.per_second).collect();
        let tails: Vec<_> = rates[which].iter().map(|rate| rate.p99).collect();
        (puts, tails)
    };
    let (base_puts, base_tails) = figures(base);
    for (which, contender) in contenders.iter().enumerate() {
        let (puts, tails) = figures(which);
        println!(
            "| {clients} | {} | {:.0} | {:.0} | {} | {} |",
            contender.kind,
            median(&puts),
            median(&tails),
            compared(&puts, &base_puts)?.marked(),
            compared(&tails, &base_tails)?.marked()
        );
    }
    Ok(())
}
