//! Runs the contenders of a case in rounds. Each lap has a lap of the baseline right beside it, before it in one round
//! and after it in the next: what disturbs the machine for longer than two laps disturbs both.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::{
    cases::{BATCH, Case, Lap},
    roster::Entry,
    stats::Middle,
};

/// How long and how often.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plan {
    /// Rounds of each case.
    pub rounds: usize,
    /// About how long a lap takes.
    pub lap_micros: u64,
    /// About how long a lap of two threads takes.
    pub threaded_lap_micros: u64,
}

impl Plan {
    /// For a look: less than a minute.
    pub const QUICK: Plan = Plan { rounds: 41, lap_micros: 500, threaded_lap_micros: 1500 };
    /// For figures that one may quote: some minutes.
    pub const FULL: Plan = Plan { rounds: 301, lap_micros: 1000, threaded_lap_micros: 3000 };

    fn lap(&self, case: Case) -> Duration {
        Duration::from_micros(if case.is_threaded() { self.threaded_lap_micros } else { self.lap_micros })
    }
}

/// What came out for a contender in a case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The case's name.
    pub case: &'static str,
    /// The contender.
    pub rival: &'static str,
    /// Bytes of what the completing side holds, without the heap.
    pub bytes: usize,
    /// The median of the ratios to the baseline's lap beside it, with its 95 % bootstrap interval.
    pub ratio: Middle,
    /// Nanoseconds of an operation, with quartiles.
    pub nanos: Middle,
    /// Operations of a lap.
    pub operations: u64,
}

/// A contender that did not do what it was measured for.
#[derive(Debug)]
pub struct WorkNotDone {
    case: Case,
    rival: &'static str,
    told: u64,
    expected: u64,
}

impl fmt::Display for WorkNotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WorkNotDone { case, rival, told, expected } = self;
        write!(f, "{rival} did not do the work of {}: it told {told} instead of {expected}", case.name())
    }
}

impl std::error::Error for WorkNotDone {}

/// A contender with its number of operations and what its laps came to.
struct Track {
    entry: Entry,
    operations: u64,
    ratios: Vec<f64>,
    nanos: Vec<f64>,
}

/// Measures one case. The baseline runs against itself too: that row shows what the machine's noise alone makes.
///
/// # Errors
///
/// If a callback did not run, or ran twice.
pub fn measure(case: Case, entries: &[Entry], plan: &Plan) -> Result<Vec<Row>, WorkNotDone> {
    let target = plan.lap(case);
    let mut tracks = Vec::new();
    for entry in entries.iter().filter(|entry| entry.case == case) {
        let operations = calibrate(entry, target)?;
        tracks.push(Track { entry: *entry, operations, ratios: Vec::new(), nanos: Vec::new() });
    }
    let baseline = tracks.iter().find(|track| track.entry.rival == case.baseline());
    let Some((base, base_operations)) = baseline.map(|track| (track.entry, track.operations)) else {
        return Ok(Vec::new());
    };
    for round in 0..plan.rounds {
        let all = tracks.len();
        for place in 0..all {
            let track = &mut tracks[(round + place) % all];
            let (of_base, of_rival);
            if round % 2 == 0 {
                of_base = run(&base, base_operations)?;
                of_rival = run(&track.entry, track.operations)?;
            } else {
                of_rival = run(&track.entry, track.operations)?;
                of_base = run(&base, base_operations)?;
            }
            track.ratios.push(of_rival / of_base);
            track.nanos.push(of_rival);
        }
    }
    Ok(tracks.iter().map(Track::row).collect())
}

impl Track {
    fn row(&self) -> Row {
        Row {
            case: self.entry.case.name(),
            rival: self.entry.rival,
            bytes: self.entry.bytes,
            ratio: Middle::with_interval(&self.ratios),
            nanos: Middle::with_quartiles(&self.nanos),
            operations: self.operations,
        }
    }
}

/// Runs a lap and gives the nanoseconds of an operation.
fn run(entry: &Entry, operations: u64) -> Result<f64, WorkNotDone> {
    Ok(checked_lap(entry, operations)?.elapsed.as_secs_f64() * 1e9 / operations as f64)
}

/// Runs a lap and checks that the work was done.
///
/// # Errors
///
/// If a callback did not run, or ran twice.
pub fn checked_lap(entry: &Entry, operations: u64) -> Result<Lap, WorkNotDone> {
    let lap = (entry.job)(operations);
    let expected = entry.case.expected(operations);
    if lap.told == expected {
        Ok(lap)
    } else {
        Err(WorkNotDone { case: entry.case, rival: entry.rival, told: lap.told, expected })
    }
}

/// How many operations take about that long.
fn calibrate(entry: &Entry, target: Duration) -> Result<u64, WorkNotDone> {
    let mut operations = 4 * BATCH;
    loop {
        // The best of three: a disturbance must not make the laps short for good.
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            best = best.min(run(entry, operations)?);
        }
        if best * operations as f64 * 4.0 >= target.as_secs_f64() * 1e9 {
            let fitting = target.as_secs_f64() * 1e9 / best;
            return Ok((fitting as u64).div_ceil(BATCH).max(1) * BATCH);
        }
        operations *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roster::roster;

    const TINY: Plan = Plan { rounds: 3, lap_micros: 20, threaded_lap_micros: 50 };

    #[test]
    fn the_baseline_is_about_as_fast_as_itself() {
        let limit: Vec<_> = roster().into_iter().filter(|entry| entry.rival == "limit").collect();
        let rows = measure(Case::Life8, &limit, &Plan { rounds: 41, ..TINY }).unwrap();
        assert!((0.5..2.0).contains(&rows[0].ratio.median), "{rows:?}");
    }

    #[test]
    fn work_that_was_not_done_is_no_figure() {
        fn idle(_: u64) -> Lap {
            Lap { elapsed: Duration::from_millis(1), told: 0 }
        }
        let entry = Entry { case: Case::Life8, rival: "limit", bytes: 0, job: idle };
        let error = measure(Case::Life8, &[entry], &TINY).unwrap_err();
        assert!(error.to_string().starts_with("limit did not do the work of life-8"), "{error}");
    }
}
