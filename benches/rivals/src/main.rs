//! The command: measures time, and prints tables. `once` runs one case for a profiler, `list` says who runs where.

use std::{error::Error, fs, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use rivals::{
    cases::Case,
    machine::{Machine, load_average},
    measure::{Plan, checked_lap, measure},
    report::{Counts, Report, verdicts},
    roster::{Entry, roster},
};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static JEMALLOC: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ALLOCATOR: &str = if cfg!(feature = "jemalloc") { "jemalloc" } else { "the system's" };

/// One-shot callback slots side by side.
#[derive(Parser)]
#[command(name = "rivals")]
struct Args {
    /// Fewer rounds and shorter laps, for a look.
    #[arg(long)]
    quick: bool,
    /// Rounds of each case, instead of what the plan says.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only cases or contenders whose name contains this. Baselines stay. May be repeated; one match is enough.
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Writes everything as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Allocations that `count --json` has counted, for the tables.
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
    /// Says which allocator this binary was built with, and no more.
    #[arg(long)]
    allocator: bool,
    #[command(subcommand)]
    command: Option<Job>,
}

#[derive(Subcommand)]
enum Job {
    /// Lists cases and contenders.
    List,
    /// Runs operations of one contender in one case, for a profiler.
    Once {
        /// The case's name.
        case: String,
        /// The contender's name.
        rival: String,
        /// How many operations; a multiple of 256 where threads take part.
        operations: u64,
    },
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rivals: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let entries = roster();
    if args.allocator {
        println!("{ALLOCATOR}");
        return Ok(());
    }
    match &args.command {
        Some(Job::List) => {
            entries.iter().for_each(|entry| println!("{}\t{}", entry.case.name(), entry.rival));
            Ok(())
        }
        Some(Job::Once { case, rival, operations }) => once(&entries, case, rival, *operations),
        None => compare(args, &entries),
    }
}

fn once(entries: &[Entry], case: &str, rival: &str, operations: u64) -> Result<(), Box<dyn Error>> {
    let entry = entries.iter().find(|entry| entry.case.name() == case && entry.rival == rival);
    let entry = entry.ok_or_else(|| format!("no {rival} in {case}; `list` shows what there is"))?;
    checked_lap(entry, operations)?;
    Ok(())
}

fn compare(args: &Args, entries: &[Entry]) -> Result<(), Box<dyn Error>> {
    let mut plan = if args.quick { Plan::QUICK } else { Plan::FULL };
    plan.rounds = args.rounds.unwrap_or(plan.rounds);
    let counts: Counts = match &args.counts {
        Some(file) => serde_json::from_str(&fs::read_to_string(file)?)?,
        None => Counts::new(),
    };
    let wanted: Vec<_> = entries.iter().copied().filter(|entry| is_wanted(args, entry)).collect();
    let mut report = Report {
        allocator: ALLOCATOR,
        machine: Machine::describe(),
        load_after: String::new(),
        plan,
        rows: Vec::new(),
        verdicts: Vec::new(),
    };
    for case in Case::ALL {
        // A baseline alone answers no question.
        if wanted.iter().any(|entry| entry.case == case && matches(args, entry)) {
            eprintln!("{}", case.name());
            report.rows.extend(measure(case, &wanted, &plan)?);
        }
    }
    report.load_after = load_average();
    report.verdicts = verdicts(&report.rows);
    println!("{}", report.to_markdown(&counts));
    if let Some(file) = &args.json {
        fs::write(file, serde_json::to_string_pretty(&report)?)?;
    }
    Ok(())
}

fn is_wanted(args: &Args, entry: &Entry) -> bool {
    entry.rival == entry.case.baseline() || matches(args, entry)
}

fn matches(args: &Args, entry: &Entry) -> bool {
    let hit =
        |text: &String| entry.case.name().contains(text.as_str()) || entry.rival.contains(text.as_str());
    args.filter.is_empty() || args.filter.iter().any(hit)
}
