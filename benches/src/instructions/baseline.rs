//! The committed counts and the comparison with them.

use std::{collections::BTreeMap, fmt, fmt::Write as _};

/// Counts by the names of their cases, and what they were made with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// The compiler: another one makes other code.
    pub made_with: String,
    /// Instructions for one operation.
    pub counts: BTreeMap<String, f64>,
}

/// Where the text of a baseline is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct NotABaseline {
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for NotABaseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the baseline is not a count, a tab and the name of a case", self.line)
    }
}

impl std::error::Error for NotABaseline {}

/// How far a count may go above the baseline, as a part of it: what the compiler inlines changes a little with the code
/// around, and threads that wait for each other do not always wait for equally long.
const TOLERANCE: f64 = 0.1;

const HEADER: &str =
    "# Instructions for one operation, as callgrind counts them. Written anew with `instructions --write`.\n";
const MADE_WITH: &str = "# made with: ";

impl Baseline {
    /// Reads what `Display` wrote.
    ///
    /// # Errors
    /// A line is neither a remark nor a count.
    pub fn parse(text: &str) -> Result<Self, NotABaseline> {
        let mut baseline = Self::default();
        for (index, line) in text.lines().enumerate() {
            if let Some(made_with) = line.strip_prefix(MADE_WITH) {
                made_with.clone_into(&mut baseline.made_with);
            } else if !line.starts_with('#') {
                let wrong = NotABaseline { line: index + 1 };
                let Some((count, name)) = line.split_once('\t') else { return Err(wrong) };
                let Ok(count) = count.trim().parse() else { return Err(wrong) };
                baseline.counts.insert(name.to_owned(), count);
            }
        }
        Ok(baseline)
    }

    /// Compares a count with the one here.
    #[must_use]
    pub fn compare(&self, name: &str, count: f64) -> Verdict {
        match self.counts.get(name) {
            None => Verdict::New,
            Some(&before) if count > before * (1.0 + TOLERANCE) => Verdict::More(before),
            Some(&before) if count < before * (1.0 - TOLERANCE) => Verdict::Fewer(before),
            Some(&before) => Verdict::Same(before),
        }
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{HEADER}{MADE_WITH}{}\n", self.made_with);
        for (name, count) in &self.counts {
            writeln!(text, "{count:10.1}\t{name}")?;
        }
        f.write_str(&text)
    }
}

/// How a count stands to the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Within the tolerance of the baseline's.
    Same(f64),
    /// More than the baseline's: slower code.
    More(f64),
    /// Fewer than the baseline's: it may be written anew, so that it stays so.
    Fewer(f64),
    /// The baseline has none.
    New,
}

impl Verdict {
    /// Whether the guard lets it pass.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::Same(_) | Self::Fewer(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(before) => write!(f, "as before ({before:.1})"),
            Self::More(before) => write!(f, "MORE than before ({before:.1})"),
            Self::Fewer(before) => write!(f, "fewer than before ({before:.1})"),
            Self::New => f.write_str("NOT in the baseline"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_bad_line_is_named() {
        let counts = BTreeMap::from([("slot/completed".to_owned(), 126.5), ("put/A".to_owned(), 40_000.0)]);
        let baseline = Baseline { made_with: "rustc 1".to_owned(), counts };
        assert_eq!(Baseline::parse(&baseline.to_string()).unwrap(), baseline);
        for wrong in ["# remark\nno tab", "# remark\nmany\tslot/completed"] {
            assert_eq!(Baseline::parse(wrong).unwrap_err(), NotABaseline { line: 2 });
        }
    }

    #[test]
    fn a_count_beyond_the_tolerance_or_without_a_baseline_does_not_pass() {
        let baseline =
            Baseline { made_with: String::new(), counts: BTreeMap::from([("a".to_owned(), 100.0)]) };
        let compare = |count| baseline.compare("a", count);
        assert_eq!(compare(110.1), Verdict::More(100.0));
        assert_eq!(compare(89.9), Verdict::Fewer(100.0));
        assert!(!compare(110.1).passes() && compare(109.9).passes() && compare(50.0).passes());
        assert!(!baseline.compare("b", 1.0).passes());
    }
}
