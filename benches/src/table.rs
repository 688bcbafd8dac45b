//! The tables that a person reads.

use std::fmt::Write;

use storage_pipeline::CompletionMode;

use crate::{
    cpu::GROUPS,
    figures::Figures,
    stats::{Ratio, median},
};

/// The rounds of each mode with one number of clients.
pub type Rounds = Vec<(CompletionMode, Vec<Figures>)>;

/// The ratio of each mode's QPS to `SchedulerThread`'s in the same rounds.
#[must_use]
pub fn qps_ratio(rounds: &Rounds, figures: &[Figures]) -> Option<Ratio> {
    let (_, base) = rounds.iter().find(|(mode, _)| *mode == CompletionMode::SchedulerThread)?;
    let qps = |figures: &[Figures]| figures.iter().map(|figures| figures.qps).collect::<Vec<_>>();
    Ratio::paired(&qps(figures), &qps(base))
}

/// One table: a row per mode, medians over the rounds.
#[must_use]
pub fn render(clients: u32, rounds: &Rounds) -> String {
    let mut out = String::new();
    let plural = if clients == 1 { "" } else { "s" };
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "\n{clients} client{plural}\n{:<25}{:>7}{:>9}{:>9}   {:<22}{:>17}{:>18}   CPU, ms per 1,000 writes",
        "", "", "average", "p99", "QPS to", "applied to told", "applied to free",
    );
    let _ = writeln!(
        out,
        "{:<25}{:>7}{:>9}{:>9}   {:<22}{:>17}{:>18}  {}",
        "mode",
        "QPS",
        "us",
        "us",
        "SchedulerThread",
        "avg / p99 us",
        "avg / p99 us",
        GROUPS.map(|group| format!("{group:>10}")).concat(),
    );
    for (mode, figures) in rounds {
        let of = |pick: &dyn Fn(&Figures) -> f64| median(&figures.iter().map(pick).collect::<Vec<_>>());
        let ratio = qps_ratio(rounds, figures).map_or_else(String::new, |ratio| ratio.marked());
        let spread = |average: f64, p99: f64| format!("{average:.0} / {p99:.0}");
        let cpu = GROUPS.map(|group| {
            let micros = of(&|f: &Figures| f.cpu_us_per_1000.get(group).copied().unwrap_or(0.0));
            format!("{:>10.1}", micros / 1000.0)
        });
        let _ = writeln!(
            out,
            "{:<25}{:>7.0}{:>9.0}{:>9.0}   {:<22}{:>17}{:>18}  {}",
            mode.to_string(),
            of(&|f| f.qps),
            of(&|f| f.average_us),
            of(&|f| f.p99_us),
            ratio,
            spread(of(&|f| f.applied_to_caller_us.average), of(&|f| f.applied_to_caller_us.p99)),
            spread(of(&|f| f.applied_to_released_us.average), of(&|f| f.applied_to_released_us.p99)),
            cpu.concat(),
        );
    }
    out
}
