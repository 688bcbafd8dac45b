//! The demo: clients insert rows through two-phase commit, in every completion mode, rounds of the modes interleaved;
//! then every acknowledged row is read back, and one table per number of clients is printed.

use std::{fs, io::IsTerminal, path::PathBuf, process::ExitCode, time::Duration};

use benches::{
    figures::Figures,
    program,
    round::{Failure, Round, read_back},
    table::{self, Rounds},
    workload::{Condition, Workload},
};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use storage_pipeline::CompletionMode;

/// Insert rows through real two-phase commit in every completion mode and compare the modes.
#[derive(Parser)]
#[command(name = "demo")]
struct Args {
    /// Seconds of each timed round.
    #[arg(long, default_value_t = 0.8)]
    secs: f64,
    /// Rounds of each mode and number of clients.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Numbers of client threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 16, 32], value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,
    /// Completion modes.
    #[arg(long, value_delimiter = ',', default_values_t = CompletionMode::ALL)]
    modes: Vec<CompletionMode>,
    /// Where the data goes: a new directory is made in it and removed at the end. Default: the system's temporary one.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Also write all figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    program::end("demo", run(&Args::parse()))
}

fn run(args: &Args) -> Result<(), Failure> {
    if !(args.secs > 0.0 && args.secs <= 3600.0) {
        return Err(format!("--secs {} is not above 0 and at most 3600", args.secs).into());
    }
    let dir = program::data_dir(args.dir.as_deref())?;
    let stores: Vec<_> = args.modes.iter().map(|mode| (*mode, dir.path().join(mode.to_string()))).collect();
    let mut acknowledged: Vec<Vec<(u32, u32)>> = vec![Vec::new(); stores.len()];
    let mut tables: Vec<(u32, Rounds)> = Vec::new();
    let bar = progress(u64::from(args.rounds) * (args.threads.len() * stores.len()) as u64);
    let mut first_client = 0;
    for &clients in &args.threads {
        let mut rounds: Rounds = args.modes.iter().map(|mode| (*mode, Vec::new())).collect();
        for round in 0..args.rounds {
            // Each round starts with another mode, so that none always follows the same one.
            for turn in 0..stores.len() {
                let which = (turn + round as usize) % stores.len();
                let (mode, dir) = &stores[which];
                bar.set_message(format!("{clients} clients, {mode}"));
                let length = Duration::from_secs_f64(args.secs);
                let round = Round {
                    dir,
                    mode: *mode,
                    workload: Workload::Inserts,
                    condition: Condition::Idle,
                    clients,
                    arrivals: None,
                    first_client,
                    length,
                };
                let ran = round.run()?;
                acknowledged[which].extend(ran.acknowledged);
                rounds[which].1.push(ran.figures);
                bar.inc(1);
            }
            first_client += clients;
        }
        tables.push((clients, rounds));
    }
    bar.finish_and_clear();
    let mut rows = 0;
    for ((mode, dir), acknowledged) in stores.iter().zip(&acknowledged) {
        rows += read_back(dir, *mode, acknowledged)?;
    }
    println!("Read back every acknowledged row: {rows} rows in {} stores, none missing.", stores.len());
    println!(
        "Medians of {} rounds of {} s, modes interleaved. A write is a transaction of two keys: begin, prewrite, commit.",
        args.rounds, args.secs
    );
    for (clients, rounds) in &tables {
        print!("{}", table::render(*clients, rounds));
    }
    println!("\n\"=\" marks a ratio whose interval holds 1: no difference was found.");
    if let Some(file) = &args.json {
        fs::write(file, serde_json::to_vec_pretty(&figures_as_json(args, rows, &tables))?)?;
    }
    Ok(())
}

fn progress(rounds: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        eprintln!("{rounds} rounds");
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} rounds, {eta} left: {msg}");
    ProgressBar::new(rounds).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn figures_as_json(args: &Args, rows: u64, tables: &[(u32, Rounds)]) -> Value {
    let mode = |rounds: &Rounds, mode: &CompletionMode, figures: &Vec<Figures>| {
        json!({
            "mode": mode.to_string(),
            "qps_to_scheduler_thread": table::qps_ratio(rounds, figures),
            "rounds": figures,
        })
    };
    let tables: Vec<_> = tables
        .iter()
        .map(|(clients, rounds)| {
            let modes: Vec<_> = rounds.iter().map(|(name, figures)| mode(rounds, name, figures)).collect();
            json!({ "clients": clients, "modes": modes })
        })
        .collect();
    json!({ "secs": args.secs, "rounds": args.rounds, "rows_read_back": rows, "tables": tables })
}
