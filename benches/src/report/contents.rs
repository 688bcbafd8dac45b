//! What a report says, in order: the page and the Markdown only differ in how they show it.

use storage_pipeline::CompletionMode;

use super::{hypotheses, plots, tables};
use crate::{
    plan::{CAPACITY, Cell},
    record::Results,
    workload::{Condition, Workload},
};

/// One part of a report.
#[derive(Clone, Debug)]
pub enum Part {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A list.
    List(Vec<String>),
    /// What to type.
    Command(String),
    /// A table: its head and its rows.
    Table(Vec<String>, Vec<Vec<String>>),
    /// A plot, as SVG, and what it shows.
    Plot(String, String),
}

/// A whole report.
#[derive(Clone, Debug)]
pub struct Contents {
    /// What it is called.
    pub title: String,
    /// Its parts.
    pub parts: Vec<Part>,
}

/// How to read every table.
const READING: &str = "Each figure is the median of the rounds. A ratio is the median of the ratios to `SchedulerThread` \
    in the same round, with a 95 % bootstrap interval; \"=\" marks an interval that holds 1, where no difference was \
    found. Times are in microseconds. \"Applied to told\" runs from the applied batch to the call of the caller's \
    callback, \"applied to free\" to the released latches, each as average / 99th percentile. CPU is milliseconds per \
    1,000 operations; \"switches\" are context switches of all threads per operation; \"allocations\" are those of the \
    pipeline's threads and of the callers' per operation.";

/// Makes the contents from what was measured.
#[must_use]
pub fn contents(results: &Results) -> Contents {
    let mut parts = vec![Part::Text(intro(results)), Part::Heading("How it was measured".to_owned())];
    parts.extend(machine(results));
    parts.push(Part::Heading("The hypotheses".to_owned()));
    parts.extend(hypotheses::parts(results));
    parts.push(Part::Heading("Plots".to_owned()));
    parts.extend(plots::parts(results));
    parts.push(Part::Heading("tikv pull 4424's own table beside ours".to_owned()));
    parts.extend(tables::beside_pull_4424(results));
    parts.push(Part::Heading("Every cell".to_owned()));
    parts.push(Part::Text(READING.to_owned()));
    for cell in results.cells() {
        parts.push(Part::Text(format!("**{cell}**")));
        parts.push(tables::cell(results, &cell));
    }
    Contents { title: "Which thread should finish a write?".to_owned(), parts }
}

fn intro(results: &Results) -> String {
    let rounds = results.records.len();
    let best = CompletionMode::ALL
        .into_iter()
        .max_by(|a, b| results.qps(&CAPACITY, *a).total_cmp(&results.qps(&CAPACITY, *b)));
    let best = best.map_or_else(String::new, |mode| {
        format!(
            " The highest median at {CAPACITY}: `{mode}`, {:.0} per second.",
            results.qps(&CAPACITY, mode)
        )
    });
    format!(
        "The five completion modes of the pipeline share every step of a write but two: who tells the caller, and who \
         releases the latches. This is what the choice costs and brings, from {rounds} rounds of one run. Everything is \
         durable: a write is acknowledged after the fsync that covers its raft entry, by a single replica.{best}"
    )
}

fn machine(results: &Results) -> Vec<Part> {
    let run = &results.run;
    let machine = &run.machine;
    vec![
        Part::List(vec![
            format!("Processor: {}, {} cores for everything, clients included.", machine.processor, machine.cores),
            format!("System: {}.", machine.system),
            format!("Versions: {}. Commit {}.", machine.versions.join(", "), machine.commit),
            format!("Load averages before the first round: {}.", machine.load),
            format!(
                "{} rounds of {} s of each mode in each cell, the modes interleaved, after a warm-up; a fresh store for \
                 each mode and cell.",
                run.rounds, run.seconds
            ),
            "Closed loop: a client sends its next operation when it has the answer to the last. Where operations arrive \
             by a clock, the time of one begins when it was due, so that a stall counts for everybody it would have met."
                .to_owned(),
        ]),
        Part::Text("The same again, on another machine (about five minutes, or at most an hour):".to_owned()),
        Part::Command("make bench-report FORM=quick\nmake bench-report".to_owned()),
    ]
}

/// The cells with one workload and condition whose clients wait for their answers, by number of clients.
pub(super) fn closed(results: &Results, workload: Workload, condition: Condition) -> Vec<Cell> {
    let of_these =
        |cell: &Cell| cell.workload == workload && cell.condition == condition && cell.load.is_none();
    results.cells().into_iter().filter(of_these).collect()
}
