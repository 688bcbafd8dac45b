//! The tables of a report.

use storage_pipeline::CompletionMode;

use super::contents::{Part, closed};
use crate::{
    allocations::OTHERS,
    cpu::GROUPS,
    figures::{Figures, Spread},
    plan::Cell,
    record::Results,
    stats::{Ratio, median},
    workload::{Condition, Workload},
};

/// The median of something over the rounds.
pub(super) fn middle(figures: &[&Figures], pick: impl Fn(&Figures) -> f64) -> f64 {
    median(&figures.iter().map(|figures| pick(figures)).collect::<Vec<_>>())
}

/// The ratio of something in one mode to the same in another, round by round.
pub(super) fn ratio(
    results: &Results,
    cell: &Cell,
    (mode, base): (CompletionMode, CompletionMode),
    pick: impl Fn(&Figures) -> f64,
) -> Option<Ratio> {
    let of = |mode| results.of(cell, mode).into_iter().map(&pick).collect::<Vec<_>>();
    let (own, base) = (of(mode), of(base));
    (own.len() == base.len()).then(|| Ratio::paired(&own, &base)).flatten()
}

/// A ratio as the tables show it.
pub(super) fn shown(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.marked())
}

/// Every mode in one cell.
pub(super) fn cell(results: &Results, cell: &Cell) -> Part {
    let head = [
        "mode",
        "per second",
        "to SchedulerThread",
        "average",
        "p50",
        "p99",
        "p99.9",
        "applied to told",
        "applied to free",
    ];
    let cpu = GROUPS.map(|group| format!("CPU {group}"));
    let head = head.map(str::to_owned).into_iter().chain(cpu);
    let head = head.chain(["switches".to_owned(), "allocations".to_owned()]).collect();
    let rows = CompletionMode::ALL.map(|mode| row(results, cell, mode)).to_vec();
    Part::Table(head, rows)
}

fn row(results: &Results, cell: &Cell, mode: CompletionMode) -> Vec<String> {
    let figures = results.of(cell, mode);
    let whole = |pick: &dyn Fn(&Figures) -> f64| format!("{:.0}", middle(&figures, pick));
    let spread = |pick: &dyn Fn(&Figures) -> Spread| {
        let (average, p99) = (middle(&figures, |f| pick(f).average), middle(&figures, |f| pick(f).p99));
        format!("{average:.0} / {p99:.0}")
    };
    let to_base = ratio(results, cell, (mode, CompletionMode::SchedulerThread), |f| f.qps);
    let mut row = vec![
        format!("`{mode}`"),
        whole(&|f| f.qps),
        if mode == CompletionMode::SchedulerThread { "1".to_owned() } else { shown(to_base) },
        whole(&|f| f.average_us),
        whole(&|f| f.p50_us),
        whole(&|f| f.p99_us),
        whole(&|f| f.p999_us),
        spread(&|f| f.applied_to_caller_us),
        spread(&|f| f.applied_to_released_us),
    ];
    row.extend(GROUPS.map(|group| format!("{:.1}", middle(&figures, |f| cpu(f, group)) / 1000.0)));
    row.push(format!("{:.1}", middle(&figures, |f| f.switches_per_write)));
    let allocations = |callers: bool| {
        middle(&figures, |f| {
            let of_side = f.allocations_per_write.iter().filter(|(group, _)| (*group == OTHERS) == callers);
            of_side.map(|(_, count)| count).sum()
        })
    };
    row.push(format!("{:.0} + {:.0}", allocations(false), allocations(true)));
    row
}

/// Microseconds of CPU per 1,000 operations of a group of threads.
pub(super) fn cpu(figures: &Figures, group: &str) -> f64 {
    figures.cpu_us_per_1000.get(group).copied().unwrap_or(0.0)
}

/// What that pull request's description says, of which the first row is certain here: threads, then queries per
/// second, average and 99th percentile in milliseconds for the branch it started from and for itself.
const PULL_4424: [(u32, [f64; 3], [f64; 3]); 1] = [(1, [526.0, 1.89, 2.43], [541.0, 1.84, 2.35])];

/// Its table beside the two modes that stand for its two sides.
pub(super) fn beside_pull_4424(results: &Results) -> Vec<Part> {
    let text = "That table compares inserts through a whole cluster: a SQL layer, a network, and replicas on other \
        machines, of 2019. Ours are inserts of the same shape through an embedded store of one replica. The times are \
        therefore not comparable, and the ratio of the two sides is: there `master` and `branch`, here \
        `SchedulerThread` and `ApplyNotify`, as QPS / average ms / p99 ms. Its other rows are in the pull request \
        (github.com/tikv/tikv/pull/4424).";
    let head =
        ["clients", "pull 4424: master", "branch", "ratio", "here: SchedulerThread", "ApplyNotify", "ratio"];
    let rows = closed(results, Workload::Inserts, Condition::Idle).into_iter().map(|cell| {
        let theirs = PULL_4424.iter().find(|(clients, ..)| *clients == cell.clients);
        let said = |[qps, average, p99]: [f64; 3]| format!("{qps:.0} / {average:.2} / {p99:.2}");
        let ours = |mode| {
            let figures = results.of(&cell, mode);
            let at = |pick: fn(&Figures) -> f64| middle(&figures, pick);
            said([at(|f| f.qps), at(|f| f.average_us) / 1000.0, at(|f| f.p99_us) / 1000.0])
        };
        let (base, branch) = (CompletionMode::SchedulerThread, CompletionMode::ApplyNotify);
        vec![
            cell.clients.to_string(),
            theirs.map_or_else(String::new, |(_, master, _)| said(*master)),
            theirs.map_or_else(String::new, |(_, _, branch)| said(*branch)),
            theirs.map_or_else(String::new, |(_, master, branch)| format!("{:.2}", branch[0] / master[0])),
            ours(base),
            ours(branch),
            shown(ratio(results, &cell, (branch, base), |f| f.qps)),
        ]
    });
    vec![Part::Text(text.to_owned()), Part::Table(head.map(str::to_owned).to_vec(), rows.collect())]
}
