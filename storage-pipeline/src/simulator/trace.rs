//! What happened, line by line, for whoever replays a seed; and a digest of it in any case, by which two runs of one seed
//! are known to be the same.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

pub(super) struct Trace {
    lines: Option<Vec<String>>,
    hasher: DefaultHasher,
}

impl Trace {
    /// Keeps the lines, or only their digest.
    pub(super) fn new(keeps_lines: bool) -> Self {
        Self { lines: keeps_lines.then(Vec::new), hasher: DefaultHasher::new() }
    }

    pub(super) fn line(&mut self, now: Duration, what: impl FnOnce() -> String) {
        now.hash(&mut self.hasher);
        if let Some(lines) = &mut self.lines {
            let line = what();
            lines.push(format!("{:>10.3} ms  {line}", now.as_secs_f64() * 1e3));
        }
    }

    /// A digest of the times of all that happened, which differ as soon as anything does.
    pub(super) fn digest(&self) -> u64 {
        self.hasher.finish()
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}
