//! How figures of interleaved rounds are compared: medians of paired ratios, with bootstrap intervals.

use std::fmt;

use serde::Serialize;

use crate::round::Failure;

/// Number of resamples. More changes the third digit only.
const RESAMPLES: usize = 2000;

/// A ratio to a baseline of the same round, with a 95 % bootstrap interval of its median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The median over the rounds.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Ratio {
    /// Compares figures to baselines, round by round. `None` without rounds.
    #[must_use]
    pub fn paired(figures: &[f64], baselines: &[f64]) -> Option<Self> {
        let ratios: Vec<_> = figures.iter().zip(baselines).map(|(figure, base)| figure / base).collect();
        if ratios.is_empty() || ratios.iter().any(|ratio| !ratio.is_finite()) {
            return None;
        }
        // A fixed seed: the same figures give the same interval.
        let mut seed = 0x2545_F491_4F6C_DD1D_u64;
        let mut medians: Vec<_> = (0..RESAMPLES)
            .map(|_| {
                let resample: Vec<_> = (0..ratios.len())
                    .map(|_| {
                        seed ^= seed << 13;
                        seed ^= seed >> 7;
                        seed ^= seed << 17;
                        ratios[(seed % ratios.len() as u64) as usize]
                    })
                    .collect();
                median(&resample)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let at = |share: f64| medians[((RESAMPLES - 1) as f64 * share) as usize];
        Some(Self { median: median(&ratios), low: at(0.025), high: at(0.975) })
    }

    /// As tables show it: with a mark where the interval holds 1, where no difference was found.
    #[must_use]
    pub fn marked(&self) -> String {
        format!("{self}{}", if self.differs() { "" } else { " =" })
    }

    /// Whether the interval leaves 1 outside.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, low, high } = self;
        write!(f, "{median:.2} [{low:.2} {high:.2}]")
    }
}

/// Compares figures to baselines that must be there.
///
/// # Errors
/// There are no rounds, or one of them did nothing.
pub fn compared(figures: &[f64], baselines: &[f64]) -> Result<Ratio, Failure> {
    Ratio::paired(figures, baselines).ok_or_else(|| "a round in which nothing was done".into())
}

/// The median; zero of nothing.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_figures_do_not_differ_and_twice_as_much_does() {
        let base = [10.0, 11.0, 9.0, 10.5, 9.5];
        assert!(!Ratio::paired(&base, &base).unwrap().differs());
        let twice: Vec<_> = base.iter().map(|figure| figure * 2.0).collect();
        let ratio = Ratio::paired(&twice, &base).unwrap();
        assert!(ratio.differs());
        assert_eq!(ratio, Ratio { median: 2.0, low: 2.0, high: 2.0 });
    }

    #[test]
    fn noise_around_one_is_no_difference() {
        let ratio = Ratio::paired(&[9.0, 11.0, 10.0, 8.0, 12.0], &[10.0; 5]).unwrap();
        assert!(!ratio.differs());
        assert!(ratio.low <= ratio.median && ratio.median <= ratio.high);
    }

    #[test]
    fn nothing_to_compare_is_no_ratio() {
        assert_eq!(Ratio::paired(&[], &[]), None);
        assert_eq!(Ratio::paired(&[1.0], &[0.0]), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
