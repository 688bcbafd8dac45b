//! Tables for people and JSON for programs, and whether the goals were met.

use std::{collections::BTreeMap, fmt::Write};

use serde::{Deserialize, Serialize};

use crate::{
    cases::Case,
    machine::Machine,
    measure::{Plan, Row},
};

/// What an operation asks of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heap {
    /// Allocations of an operation.
    pub allocations: f64,
    /// Bytes asked for by an operation.
    pub bytes: f64,
}

/// For each case and contender what it asks of the allocator.
pub type Counts = BTreeMap<String, BTreeMap<String, Heap>>;

/// Everything of one run.
#[derive(Serialize)]
pub struct Report {
    /// The allocator that the binary was built with.
    pub allocator: &'static str,
    /// Where it ran.
    pub machine: Machine,
    /// The load average at the end.
    pub load_after: String,
    /// How long and how often.
    pub plan: Plan,
    /// The figures.
    pub rows: Vec<Row>,
    /// The goals.
    pub verdicts: Vec<Verdict>,
}

/// A goal, and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// What was asked for.
    pub goal: &'static str,
    /// In which case.
    pub case: &'static str,
    /// The contender that should reach it.
    pub rival: &'static str,
    /// The highest ratio to the baseline that is good enough.
    pub at_most: f64,
    /// The ratio that was measured.
    pub ratio: f64,
    /// Whether it is good enough.
    pub met: bool,
}

/// The goals: what for, in which case, who, at most.
const GOALS: [(&str, Case, &str, f64); 11] = [
    ("the plain slot", Case::Life8, "CallbackSlot", 1.05),
    ("the plain slot", Case::Life64, "CallbackSlot", 1.05),
    ("the plain slot", Case::Life256, "CallbackSlot", 1.05),
    ("the plain slot", Case::HandOver, "CallbackSlot", 1.05),
    ("the plain slot", Case::Race, "CallbackSlot", 1.05),
    ("zero-sized", Case::Life0, "CallbackSlot", 1.25),
    ("the fused slot", Case::SharedLife, "SharedSlot", 0.7),
    ("in place", Case::Life8, "InPlaceSlot, 64 B", 0.5),
    ("in place", Case::Life64, "InPlaceSlot, 64 B", 0.5),
    ("in place", Case::Life256, "InPlaceSlot, 256 B", 0.5),
    ("is_armed is a plain load", Case::Poll, "CallbackSlot", 1.25),
];

/// Holds the figures against the goals; a goal whose case did not run is left out.
#[must_use]
pub fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let verdict = |(goal, case, rival, at_most): (&'static str, Case, &'static str, f64)| {
        let row = rows.iter().find(|row| row.case == case.name() && row.rival == rival)?;
        let ratio = row.ratio.median;
        Some(Verdict { goal, case: case.name(), rival, at_most, ratio, met: ratio <= at_most })
    };
    GOALS.into_iter().filter_map(verdict).collect()
}

impl Report {
    /// The whole report as Markdown.
    #[must_use]
    pub fn to_markdown(&self, counts: &Counts) -> String {
        let Machine { processor, cores, system, compiler, load, versions } = &self.machine;
        let mut text = format!(
            "allocator: {}; {processor}, {cores} cores; {system}; {compiler}; load average {load} before and {} after; \
             {} rounds of laps of {} us, with two threads {} us\n{}\n",
            self.allocator,
            self.load_after,
            self.plan.rounds,
            self.plan.lap_micros,
            self.plan.threaded_lap_micros,
            versions.join(", "),
        );
        for case in Case::ALL {
            let rows: Vec<_> = self.rows.iter().filter(|row| row.case == case.name()).collect();
            if !rows.is_empty() {
                text += &table(case, &rows, counts);
            }
        }
        text + &self.goals()
    }

    fn goals(&self) -> String {
        let mut text =
            String::from("\n| goal | case | contender | at most | measured | |\n|---|---|---|---|---|---|\n");
        for Verdict { goal, case, rival, at_most, ratio, met } in &self.verdicts {
            let met = if *met { "met" } else { "MISSED" };
            let _ = writeln!(text, "| {goal} | {case} | {rival} | {at_most:.2} | {ratio:.3} | {met} |");
        }
        text
    }
}

fn table(case: Case, rows: &[&Row], counts: &Counts) -> String {
    let mut text = format!(
        "\n### `{}`: {}\n\n| contender | ratio to {} | 95 % interval | ns | quartiles | bytes | allocations | heap bytes |\n\
         |---|---|---|---|---|---|---|---|\n",
        case.name(),
        case.title(),
        case.baseline(),
    );
    for Row { rival, bytes, ratio, nanos, .. } in rows {
        let heap = counts.get(case.name()).and_then(|counts| counts.get(*rival));
        let (allocations, heap_bytes) = heap.map_or((String::new(), String::new()), |heap| {
            (format!("{:.0}", heap.allocations), format!("{:.0}", heap.bytes))
        });
        let _ = writeln!(
            text,
            "| {rival} | {:.3} | {:.3}-{:.3} | {:.2} | {:.2}-{:.2} | {bytes} | {allocations} | {heap_bytes} |",
            ratio.median, ratio.low, ratio.high, nanos.median, nanos.low, nanos.high,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{roster::roster, stats::Middle};

    fn row(case: Case, rival: &'static str, ratio: f64) -> Row {
        let middle = Middle { median: ratio, low: ratio, high: ratio };
        Row { case: case.name(), rival, bytes: 8, ratio: middle, nanos: middle, operations: 1 }
    }

    #[test]
    fn a_missed_goal_says_so() {
        let verdicts =
            verdicts(&[row(Case::Life8, "CallbackSlot", 1.2), row(Case::SharedLife, "SharedSlot", 0.6)]);
        let met: Vec<_> = verdicts.iter().map(|verdict| verdict.met).collect();
        assert_eq!(met, [false, true]);
    }

    #[test]
    fn every_goal_names_a_contender_that_exists() {
        let entries = roster();
        for (goal, case, rival, _) in GOALS {
            assert!(
                entries.iter().any(|entry| entry.case == case && entry.rival == rival),
                "{goal}: {rival}"
            );
        }
    }
}
