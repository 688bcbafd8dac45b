//! The guard: counts the instructions of the slot's operations and of one write through a pipeline in memory, and fails
//! where they are more than the committed baseline says.

use std::{fs, path::PathBuf, process::Command, process::ExitCode};

use benches::{
    instructions::{
        baseline::Baseline,
        cases,
        count::{ONCE, per_operation},
    },
    program,
    round::Failure,
};
use clap::Parser;

/// Count instructions and compare them with the baseline.
#[derive(Parser)]
#[command(name = "instructions")]
struct Args {
    /// The baseline.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.txt"))]
    baseline: PathBuf,
    /// Write the baseline anew instead of comparing with it.
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    // Under callgrind the program is its own subject, and what reads its options is kept out of what is counted.
    let words: Vec<String> = std::env::args().collect();
    let result = match &words[..] {
        [_, once, case, times] if once == ONCE => run_once(case, times),
        _ => compare(&Args::parse()),
    };
    program::end("instructions", result)
}

fn run_once(name: &str, times: &str) -> Result<(), Failure> {
    let case = cases::all().into_iter().find(|case| case.name == name).ok_or("no such case")?;
    case.run(times.parse()?)
}

fn compare(args: &Args) -> Result<(), Failure> {
    let before =
        if args.write { Baseline::default() } else { Baseline::parse(&fs::read_to_string(&args.baseline)?)? };
    let scratch = tempfile::tempdir()?;
    let mut now = Baseline { made_with: compiler()?, ..Baseline::default() };
    let mut failed = 0;
    for case in cases::all() {
        let count = per_operation(&case, scratch.path())?;
        let verdict = before.compare(&case.name, count);
        if args.write {
            println!("{:40} {count:10.1}", case.name);
        } else {
            println!("{:40} {count:10.1} {verdict}", case.name);
            failed += usize::from(!verdict.passes());
        }
        now.counts.insert(case.name, count);
    }
    if args.write {
        fs::write(&args.baseline, now.to_string())?;
        return Ok(());
    }
    for name in before.counts.keys().filter(|name| !now.counts.contains_key(*name)) {
        println!("{name:40} in the baseline, but no case any more");
        failed += 1;
    }
    println!("instructions: {} passed, {failed} failed", now.counts.len().saturating_sub(failed));
    if failed == 0 {
        return Ok(());
    }
    let made_with = if now.made_with == before.made_with {
        String::new()
    } else {
        format!(" (which {} made; this is {})", before.made_with, now.made_with)
    };
    Err(format!(
        "{failed} counts differ from the baseline{made_with}; if that is meant, run with --write and say why"
    )
    .into())
}

fn compiler() -> Result<String, Failure> {
    let output = Command::new("rustc").arg("--version").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
