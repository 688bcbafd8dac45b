//! The file that the matrix fills while it runs: one line of JSON for the run, then one for each round. What is in it
//! need not be measured again, so that a run that was interrupted goes on where it was.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
};

use serde::{Deserialize, Serialize};
use storage_pipeline::CompletionMode;

use crate::{
    figures::Figures,
    machine::Machine,
    plan::{Cell, Form},
    round::Failure,
    stats::median,
};

/// What all rounds of a file have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// How much is measured.
    pub form: Form,
    /// Seconds of a timed window.
    pub seconds: f64,
    /// Rounds of each mode in each cell.
    pub rounds: u32,
    /// What it is measured on.
    pub machine: Machine,
}

impl Run {
    /// Whether rounds of the other one may stand beside this one's. That sources were changed without a commit, by a
    /// report for example, is not seen.
    fn is_same(&self, other: &Self) -> bool {
        let comparable = |run: &Self| {
            let commit = run.machine.commit.trim_end_matches("-dirty").to_owned();
            let machine = Machine { load: String::new(), commit, ..run.machine.clone() };
            Self { machine, ..run.clone() }
        };
        comparable(self) == comparable(other)
    }
}

/// One round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Where in the matrix.
    pub cell: Cell,
    /// Name of the mode.
    pub mode: String,
    /// Which round, from zero on.
    pub round: u32,
    /// What it measured.
    pub figures: Figures,
}

/// A file's contents.
#[derive(Clone, Debug)]
pub struct Results {
    /// What all rounds have in common.
    pub run: Run,
    /// The rounds, in the order in which they were measured.
    pub records: Vec<Record>,
}

impl Results {
    /// Reads a file. A last line that was cut off by the end of a run is left out.
    ///
    /// # Errors
    /// The file cannot be read, or another line than the last one is not what it should be.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let bad = |line: usize, error| format!("{}, line {}: {error}", path.display(), line + 1);
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines().enumerate();
        let (_, first) = lines.next().ok_or_else(|| format!("{}: empty", path.display()))?;
        let run = serde_json::from_str(first).map_err(|error| bad(0, error))?;
        let records: Result<_, _> =
            lines.map(|(at, line)| serde_json::from_str(line).map_err(|error| bad(at, error))).collect();
        Ok(Self { run, records: records? })
    }

    /// Whether a round was measured.
    #[must_use]
    pub fn has(&self, cell: &Cell, mode: CompletionMode, round: u32) -> bool {
        let mode = mode.to_string();
        self.records.iter().any(|found| found.cell == *cell && found.mode == mode && found.round == round)
    }

    /// The figures of a mode in a cell, by round.
    #[must_use]
    pub fn of(&self, cell: &Cell, mode: CompletionMode) -> Vec<&Figures> {
        let mode = mode.to_string();
        let mut found: Vec<_> =
            self.records.iter().filter(|found| found.cell == *cell && found.mode == mode).collect();
        found.sort_by_key(|record| record.round);
        found.into_iter().map(|record| &record.figures).collect()
    }

    /// The median of the throughput of a mode in a cell.
    #[must_use]
    pub fn qps(&self, cell: &Cell, mode: CompletionMode) -> f64 {
        median(&self.of(cell, mode).iter().map(|figures| figures.qps).collect::<Vec<_>>())
    }

    /// The cells of the plan that have a round.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let measured = |cell: &Cell| self.records.iter().any(|record| record.cell == *cell);
        self.run.form.cells().into_iter().filter(measured).collect()
    }
}

/// A file that a run adds to.
pub struct Recorder {
    /// What it holds.
    pub results: Results,
    file: File,
}

impl Recorder {
    /// Begins a file, or goes on with one of a run of the same form on the same machine and commit. One of another run
    /// is put aside.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path, run: Run) -> Result<Self, Failure> {
        let before = if path.exists() { Some(Results::read(path)?) } else { None };
        let results = match before {
            Some(results) if results.run.is_same(&run) => results,
            None => Results { run, records: Vec::new() },
            Some(_) => {
                let aside = path.with_extension("other.jsonl");
                eprintln!(
                    "{} is of another form, machine or commit: now {}",
                    path.display(),
                    aside.display()
                );
                fs::rename(path, aside)?;
                Results { run, records: Vec::new() }
            }
        };
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let mut whole = serde_json::to_string(&results.run)? + "\n";
        for record in &results.records {
            whole += &(serde_json::to_string(record)? + "\n");
        }
        // Without the line that was cut off, if one was.
        fs::write(path, whole)?;
        Ok(Self { results, file: File::options().append(true).open(path)? })
    }

    /// Adds a round.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, record: Record) -> Result<(), Failure> {
        self.file.write_all((serde_json::to_string(&record)? + "\n").as_bytes())?;
        self.results.records.push(record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::CAPACITY;

    #[test]
    fn a_run_that_was_cut_off_goes_on_with_what_it_has_and_no_other_run_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/results.jsonl");
        let run = Run { form: Form::Smoke, seconds: 1.0, rounds: 2, machine: Machine::default() };
        let (cell, mode) = (CAPACITY, CompletionMode::ApplyAll);
        let record = |round, qps| {
            let figures = Figures { qps, ..Figures::default() };
            Record { cell, mode: mode.to_string(), round, figures }
        };
        let mut recorder = Recorder::open(&path, run.clone()).unwrap();
        recorder.add(record(0, 10.0)).unwrap();
        recorder.add(record(1, 30.0)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 2]).unwrap();
        let mut later = run.clone();
        later.machine.load = "9 9 9".to_owned();
        let mut recorder = Recorder::open(&path, later).unwrap();
        assert!(recorder.results.has(&cell, mode, 0) && !recorder.results.has(&cell, mode, 1));
        recorder.add(record(1, 20.0)).unwrap();
        let results = Results::read(&path).unwrap();
        assert_eq!((results.qps(&cell, mode), results.cells()), (15.0, vec![cell]));
        let other = Recorder::open(&path, Run { rounds: 3, ..run }).unwrap();
        assert!(other.results.records.is_empty());
        assert_eq!(Results::read(&dir.path().join("new/results.other.jsonl")).unwrap().records.len(), 2);
    }
}
