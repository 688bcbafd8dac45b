//! Where the time of a lone client's write goes: the moments that its write passes, and the time from each to the next.

use std::{sync::Mutex, time::Instant};

use storage_pipeline::observe::{Moment, Observe};

use crate::stats::median;

/// What a write does from one moment to the next, in order.
pub const STAGES: [&str; 8] = [
    "accepted, its latches taken",
    "brought to the raftstore",
    "proposed to raft",
    "written to the raft log and synced",
    "committed, brought to apply",
    "written to the data",
    "its caller called back",
    "its caller awake again",
];

/// How long a stage takes, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// In the middle of all writes.
    pub median: f64,
    /// On average. What it is above the median, few writes waited for.
    pub mean: f64,
}

/// Watches the writes of one client that waits for each.
#[derive(Default)]
pub struct Stages {
    passed: Mutex<Vec<Instant>>,
    /// Microseconds of each stage of each write.
    micros: Mutex<[Vec<f64>; STAGES.len()]>,
}

impl Stages {
    /// Notes when a write passed its moments, once its caller has its answer. One that did not pass each of them once, as
    /// where something else was written meanwhile, is left out.
    pub fn ended(&self, began: Instant) {
        let ended = Instant::now();
        let passed = std::mem::take(&mut *self.passed.lock().expect("noting does not panic"));
        if passed.len() != STAGES.len() - 1 {
            return;
        }
        let mut micros = self.micros.lock().expect("noting does not panic");
        let mut from = began;
        for (micros, to) in micros.iter_mut().zip(passed.into_iter().chain([ended])) {
            micros.push(to.saturating_duration_since(from).as_secs_f64() * 1e6);
            from = to;
        }
    }

    /// Each stage, in the order of [`STAGES`]. `None` where no write was whole.
    #[must_use]
    pub fn figures(&self) -> Option<[Stage; STAGES.len()]> {
        let micros = self.micros.lock().expect("noting does not panic");
        let figures = micros.each_ref().map(|micros| Stage {
            median: median(micros),
            mean: micros.iter().sum::<f64>() / micros.len() as f64,
        });
        (!micros[0].is_empty()).then_some(figures)
    }
}

impl Observe for Stages {
    fn moment(&self, moment: Moment) {
        let is_boundary = matches!(
            moment,
            Moment::Proposing { .. }
                | Moment::Proposed { .. }
                | Moment::LogWriting { .. }
                | Moment::LogWritten { .. }
                | Moment::Applying { .. }
                | Moment::Applied { .. }
                | Moment::TellingCaller { .. }
        );
        if is_boundary {
            self.passed.lock().expect("noting does not panic").push(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass_all(stages: &Stages) {
        let cid = 1;
        for moment in [
            Moment::Admitted { cid, region: 1, kind: "RawPut", is_read: false },
            Moment::Proposing { cid },
            Moment::Proposed { cid, region: 1, index: 7, term: 1 },
            Moment::LogWriting { region: 1, entries: 1 },
            Moment::LogWritten { region: 1, last_index: 7, synced: true },
            Moment::Applying { region: 1, index: 7 },
            Moment::Applied { region: 1, index: 7 },
            Moment::TellingCaller { cid, applied_at: None },
        ] {
            stages.moment(moment);
        }
    }

    #[test]
    fn the_stages_of_a_write_add_up_to_the_whole_and_one_that_is_not_whole_counts_for_nothing() {
        let stages = Stages::default();
        assert_eq!(stages.figures(), None);
        stages.moment(Moment::LogWriting { region: 1, entries: 1 });
        stages.ended(Instant::now());
        assert_eq!(stages.figures(), None, "a write without its moments");

        let began = Instant::now();
        pass_all(&stages);
        stages.ended(began);
        let whole = began.elapsed().as_secs_f64() * 1e6;
        let sum: f64 = stages.figures().unwrap().iter().map(|stage| stage.mean).sum();
        assert!(sum > 0.0 && sum <= whole, "{sum} of {whole}");
    }
}
