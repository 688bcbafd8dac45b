//! The matrix: every completion mode in every cell of a plan, rounds of the modes interleaved. Fills a file that the
//! report is made from, and goes on with it where a run was interrupted.

use std::{
    fs,
    io::IsTerminal,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use benches::{
    allocations::Counting,
    machine::Machine,
    plan::{CAPACITY, Cell, Form},
    program,
    record::{Record, Recorder, Run},
    round::{Failure, Round},
};
use clap::Parser;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use storage_pipeline::CompletionMode;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Measure every completion mode under every workload and condition of a plan.
#[derive(Parser)]
#[command(name = "matrix")]
struct Args {
    /// How much is measured.
    #[arg(long, value_enum, default_value_t = Form::Full)]
    form: Form,
    /// The file that is filled, or gone on with.
    #[arg(long)]
    out: PathBuf,
    /// Where the data goes: a new directory is made in it and removed at the end. Default: the system's temporary one.
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    program::end("matrix", run(&Args::parse()))
}

fn run(args: &Args) -> Result<(), Failure> {
    let dir = program::data_dir(args.dir.as_deref())?;
    let form = args.form;
    let run = Run { form, seconds: form.seconds(), rounds: form.rounds(), machine: Machine::here() };
    let mut recorder = Recorder::open(&args.out, run)?;
    let cells = form.cells();
    let bar = Progress::new(cells.len() * form.rounds() as usize * CompletionMode::ALL.len());
    let mut first_client = 0;
    for cell in &cells {
        // A store that a mode has to itself in one cell: none pays for what another cell wrote.
        let stores = dir.path().join("stores");
        bar.cell(cell);
        for round in 0..form.rounds() {
            // Each round starts with another mode, so that none always follows the same one.
            for turn in 0..CompletionMode::ALL.len() {
                let mode = CompletionMode::ALL[(turn + round as usize) % CompletionMode::ALL.len()];
                if !recorder.results.has(cell, mode, round) {
                    let arrivals = arrivals(cell, &recorder)?;
                    let ran = Round {
                        dir: &stores.join(mode.to_string()),
                        mode,
                        workload: cell.workload,
                        condition: cell.condition,
                        clients: cell.clients,
                        arrivals,
                        first_client,
                        length: Duration::from_secs_f64(form.seconds()),
                    };
                    let figures = ran.run().map_err(|error| format!("{cell}, {mode}: {error}"))?.figures;
                    recorder.add(Record { cell: *cell, mode: mode.to_string(), round, figures })?;
                }
                bar.done();
            }
            first_client += cell.clients;
        }
        if stores.exists() {
            fs::remove_dir_all(&stores)?;
        }
    }
    bar.end();
    println!("{} rounds are in {}", recorder.results.records.len(), args.out.display());
    Ok(())
}

/// Arrivals per second of a cell whose operations arrive by a clock.
fn arrivals(cell: &Cell, recorder: &Recorder) -> Result<Option<f64>, Failure> {
    let Some(load) = cell.load else { return Ok(None) };
    let capacity = recorder.results.qps(&CAPACITY, CompletionMode::SchedulerThread);
    if capacity > 0.0 { Ok(Some(load * capacity)) } else { Err("the capacity was not measured".into()) }
}

/// A bar on a terminal; elsewhere a line for each cell.
struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    cells: std::cell::Cell<u32>,
}

impl Progress {
    fn new(rounds: usize) -> Self {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} rounds, {eta} left: {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(rounds as u64).with_style(style);
        if !std::io::stderr().is_terminal() {
            eprintln!("{rounds} rounds");
        }
        let bar = std::io::stderr().is_terminal().then_some(bar);
        Self { bar, started: Instant::now(), cells: std::cell::Cell::new(0) }
    }

    fn cell(&self, cell: &Cell) {
        self.cells.set(self.cells.get() + 1);
        match &self.bar {
            Some(bar) => bar.set_message(cell.to_string()),
            None => {
                eprintln!("{:>3}. {cell}, after {}", self.cells.get(), HumanDuration(self.started.elapsed()))
            }
        }
    }

    fn done(&self) {
        self.bar.iter().for_each(|bar| bar.inc(1));
    }

    fn end(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
