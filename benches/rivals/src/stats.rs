//! Comparing laps: medians, quartiles, and a bootstrap interval for the median of paired ratios.

use serde::Serialize;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 1000;

/// A figure in the middle of many, and two around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Middle {
    /// The median.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Middle {
    /// The median, with the interval that holds the true median in 95 of 100 experiments, by percentile bootstrap.
    #[must_use]
    pub fn with_interval(figures: &[f64]) -> Self {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
        let mut resample = vec![0.0; figures.len()];
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                resample.iter_mut().for_each(|figure| *figure = figures[dice.below(figures.len())]);
                quantile(&mut resample, 0.5)
            })
            .collect();
        Middle {
            median: quantile(&mut figures.to_vec(), 0.5),
            low: quantile(&mut medians, 0.025),
            high: quantile(&mut medians, 0.975),
        }
    }

    /// The median, with the quartiles.
    #[must_use]
    pub fn with_quartiles(figures: &[f64]) -> Self {
        let mut figures = figures.to_vec();
        Middle {
            median: quantile(&mut figures, 0.5),
            low: quantile(&mut figures, 0.25),
            high: quantile(&mut figures, 0.75),
        }
    }
}

/// The figure that `share` of all are below. Reorders; not a number of no figures.
fn quantile(figures: &mut [f64], share: f64) -> f64 {
    if figures.is_empty() {
        return f64::NAN;
    }
    let place = ((figures.len() - 1) as f64 * share).round() as usize;
    *figures.select_nth_unstable_by(place, f64::total_cmp).1
}

/// A small generator of numbers, the same ones each time: equal figures give equal intervals.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_median_and_shrinks_with_more_figures() {
        let few: Vec<f64> = (0..11).map(f64::from).collect();
        let many: Vec<f64> = (0..1100).map(|i| f64::from(i % 11)).collect();
        let (few, many) = (Middle::with_interval(&few), Middle::with_interval(&many));
        assert_eq!((few.median, many.median), (5.0, 5.0));
        assert!(few.low <= 5.0 && 5.0 <= few.high);
        assert!(many.high - many.low < few.high - few.low);
    }

    #[test]
    fn one_outlier_moves_nothing() {
        let middle = Middle::with_quartiles(&[1.0, 2.0, 3.0, 4.0, 1e9]);
        assert_eq!(middle, Middle { median: 3.0, low: 2.0, high: 4.0 });
    }

    #[test]
    fn nothing_measured_is_not_a_number() {
        assert!(Middle::with_quartiles(&[]).median.is_nan());
    }
}
