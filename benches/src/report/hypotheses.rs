//! What was expected before anything was measured, and what came of it.

use storage_pipeline::CompletionMode::{
    self, ApplyAll, ApplyNotify, ApplyNotifyWorkerRelease, SchedulerThread, WorkerAll,
};

use super::{
    contents::{Part, closed},
    tables::{cpu, middle, ratio},
};
use crate::{
    figures::Figures,
    plan::Cell,
    record::Results,
    stats::Ratio,
    workload::{Condition, Workload},
};

/// One expectation: a ratio of something in one mode to the same in another is at most so much.
struct Hypothesis {
    says: &'static str,
    cells: (Workload, Condition),
    modes: (CompletionMode, CompletionMode),
    most: f64,
    pick: fn(&Figures) -> f64,
}

const RATIOS: [Hypothesis; 4] = [
    Hypothesis {
        says: "`ApplyNotify` tells the caller in at most half of `SchedulerThread`'s average time after the batch is applied",
        cells: (Workload::Inserts, Condition::Idle),
        modes: (ApplyNotify, SchedulerThread),
        most: 0.5,
        pick: |figures| figures.applied_to_caller_us.average,
    },
    Hypothesis {
        says: "`ApplyNotify` takes at least 10 % less CPU of the scheduler thread per operation than `SchedulerThread`",
        cells: (Workload::Inserts, Condition::Idle),
        modes: (ApplyNotify, SchedulerThread),
        most: 0.9,
        pick: |figures| cpu(figures, "scheduler"),
    },
    Hypothesis {
        says: "with saturated workers `ApplyNotifyWorkerRelease` has at most 0.7 of `WorkerAll`'s 99th percentile (inserts)",
        cells: (Workload::Inserts, Condition::BusyWorkers),
        modes: (ApplyNotifyWorkerRelease, WorkerAll),
        most: 0.7,
        pick: |figures| figures.p99_us,
    },
    Hypothesis {
        says: "the same for updates of one hot key",
        cells: (Workload::HotKey, Condition::BusyWorkers),
        modes: (ApplyNotifyWorkerRelease, WorkerAll),
        most: 0.7,
        pick: |figures| figures.p99_us,
    },
];

impl Hypothesis {
    fn row(&self, results: &Results, cell: &Cell) -> Option<Vec<String>> {
        let found = ratio(results, cell, self.modes, self.pick)?;
        let verdict = verdict(found, self.most);
        Some(vec![
            self.says.to_owned(),
            cell.clients.to_string(),
            format!("{:.2}", self.most),
            found.to_string(),
            verdict.to_owned(),
        ])
    }
}

fn verdict(found: Ratio, most: f64) -> &'static str {
    match found {
        Ratio { high, .. } if high <= most => "holds",
        Ratio { low, .. } if low > most => "does not hold",
        _ => "undecided: the interval holds the bound",
    }
}

pub(super) fn parts(results: &Results) -> Vec<Part> {
    let head = ["hypothesis", "clients", "ratio at most", "measured", "verdict"].map(str::to_owned).to_vec();
    let rows = RATIOS.iter().flat_map(|hypothesis| {
        let cells = closed(results, hypothesis.cells.0, hypothesis.cells.1);
        cells.into_iter().filter_map(|cell| hypothesis.row(results, &cell)).collect::<Vec<_>>()
    });
    let mut parts = vec![Part::Table(head, rows.collect())];
    parts.extend(worst_on_a_hot_key(results));
    parts
}

/// The one expectation that is no ratio: which mode is worst.
fn worst_on_a_hot_key(results: &Results) -> Option<Part> {
    let lines: Vec<_> = closed(results, Workload::HotKey, Condition::Idle)
        .iter()
        .map(|cell| {
            let lag = |mode| middle(&results.of(cell, mode), |figures| figures.applied_to_caller_us.p99);
            let mut modes = CompletionMode::ALL.map(|mode| (lag(mode), mode));
            modes.sort_by(|a, b| b.0.total_cmp(&a.0));
            let lags: Vec<_> = modes.iter().map(|(lag, mode)| format!("`{mode}` {lag:.0}")).collect();
            let verdict = if modes[0].1 == ApplyAll { "holds by the medians" } else { "does not hold" };
            format!("{} clients: {verdict}; {} us", cell.clients, lags.join(", "))
        })
        .collect();
    let says = "`ApplyAll` has the worst lag after apply on a hot key (99th percentile from the applied batch to the told \
        caller): ";
    (!lines.is_empty()).then(|| Part::Text(format!("{says}{}.", lines.join(". "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_inside_of_the_interval_decides_nothing() {
        let at = |low, high| verdict(Ratio { median: 0.5, low, high }, 0.7);
        assert_eq!((at(0.4, 0.7), at(0.71, 0.9)), ("holds", "does not hold"));
        assert!(at(0.6, 0.8).starts_with("undecided"));
    }
}
