//! What the matrix measures, in which order, and how long: its cells and its forms.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::workload::{Condition, Workload};

/// Every mode is measured in a cell, round by round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What each client does.
    pub workload: Workload,
    /// What else goes on.
    pub condition: Condition,
    /// Number of clients.
    pub clients: u32,
    /// For operations that arrive by a clock: their rate, as a share of what `SchedulerThread` did at [`CAPACITY`].
    /// `None` where each client waits for its answer first.
    pub load: Option<f64>,
}

/// The cell whose throughput the loads are shares of.
pub const CAPACITY: Cell = Cell::closed(Workload::Inserts, Condition::Idle, 16);

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Form {
    /// Some seconds; proves that it runs and nothing else.
    Smoke,
    /// Less than five minutes.
    Quick,
    /// Less than an hour.
    Full,
}

impl Cell {
    /// A cell whose clients wait for their answers.
    #[must_use]
    pub const fn closed(workload: Workload, condition: Condition, clients: u32) -> Self {
        Self { workload, condition, clients, load: None }
    }

    const fn open(load: f64) -> Self {
        Self { load: Some(load), clients: 64, ..CAPACITY }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, condition, clients, load } = self;
        let plural = if *clients == 1 { "" } else { "s" };
        write!(f, "{workload}, {condition}, {clients} client{plural}")?;
        load.map_or(Ok(()), |load| write!(f, ", arrivals at {:.0} % of capacity", load * 100.0))
    }
}

const OTHERS: [Workload; 4] =
    [Workload::HotKey, Workload::Zipfian, Workload::MixedSizes, Workload::HalfReads];
const ALL: [Workload; 5] =
    [Workload::Inserts, Workload::HotKey, Workload::Zipfian, Workload::MixedSizes, Workload::HalfReads];

impl Form {
    /// The cells in the order in which they are measured.
    #[must_use]
    pub fn cells(self) -> Vec<Cell> {
        use Condition::{BusyWorkers, Idle, SlowCallbacks};
        let inserts = |clients: &[u32]| -> Vec<Cell> {
            clients.iter().map(|clients| Cell::closed(Workload::Inserts, Idle, *clients)).collect()
        };
        let at = |workloads: &[Workload], condition, clients: &[u32]| -> Vec<Cell> {
            let pairs = workloads.iter().flat_map(|w| clients.iter().map(move |c| (*w, *c)));
            pairs.map(|(workload, clients)| Cell::closed(workload, condition, clients)).collect()
        };
        match self {
            Self::Smoke => {
                [inserts(&[16]), at(&[Workload::HotKey], BusyWorkers, &[2]), vec![Cell::open(0.5)]].concat()
            }
            Self::Quick => [
                inserts(&[1, 16, 64]),
                at(&OTHERS, Idle, &[16]),
                at(&[Workload::Inserts, Workload::HotKey], BusyWorkers, &[16]),
                at(&[Workload::Inserts], SlowCallbacks, &[16]),
                vec![Cell::open(0.3), Cell::open(0.7)],
            ]
            .concat(),
            Self::Full => [
                inserts(&[1, 2, 4, 8, 16, 32, 64, 128]),
                at(&OTHERS, Idle, &[1, 16, 64]),
                at(&ALL, BusyWorkers, &[1, 16, 64]),
                at(&ALL, SlowCallbacks, &[1, 16, 64]),
                [0.2, 0.4, 0.6, 0.8].map(Cell::open).to_vec(),
            ]
            .concat(),
        }
    }

    /// Seconds of a round's timed window.
    #[must_use]
    pub const fn seconds(self) -> f64 {
        match self {
            Self::Smoke => 0.05,
            Self::Quick => 0.6,
            Self::Full => 1.5,
        }
    }

    /// Rounds of each mode in each cell.
    #[must_use]
    pub const fn rounds(self) -> u32 {
        match self {
            Self::Smoke => 1,
            Self::Quick => 4,
            Self::Full => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage_pipeline::CompletionMode;

    #[test]
    fn each_form_measures_the_capacity_before_it_asks_for_shares_of_it_and_keeps_to_its_time() {
        for (form, most_minutes) in [(Form::Smoke, 0.5), (Form::Quick, 5.0), (Form::Full, 60.0)] {
            let cells = form.cells();
            let capacity = cells.iter().position(|cell| *cell == CAPACITY).unwrap();
            let first_share = cells.iter().position(|cell| cell.load.is_some()).unwrap();
            assert!(capacity < first_share);
            // Opening, warming up and closing take some four tenths of a second besides.
            let rounds = cells.len() * CompletionMode::ALL.len() * form.rounds() as usize;
            let minutes = rounds as f64 * (form.seconds() * 1.15 + 0.4) / 60.0;
            assert!(minutes < most_minutes, "{form:?}: {minutes} minutes");
            for (at, cell) in cells.iter().enumerate() {
                assert!(!cells[..at].contains(cell), "{cell} twice");
            }
        }
    }
}
