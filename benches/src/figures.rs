//! What one round measured.

use std::collections::BTreeMap;

use serde::Serialize;

/// The figures of one round of one mode. Times are in microseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Transactions acknowledged within the timed window.
    pub writes: u64,
    /// Transactions per second.
    pub qps: f64,
    /// Average time of a transaction.
    pub average_us: f64,
    /// 99th percentile of the same.
    pub p99_us: f64,
    /// From the applied batch to the return of the caller's callback: average and 99th percentile.
    pub applied_to_caller_us: Spread,
    /// From the applied batch to the released latches.
    pub applied_to_released_us: Spread,
    /// CPU time of each group of threads per 1,000 transactions.
    pub cpu_us_per_1000: BTreeMap<&'static str, f64>,
}

/// An average and a 99th percentile.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    /// The average.
    pub average: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Spread {
    /// Of a histogram of nanoseconds, in microseconds.
    #[must_use]
    pub fn of_nanos(histogram: &hdrhistogram::Histogram<u64>) -> Self {
        Self { average: histogram.mean() / 1000.0, p99: histogram.value_at_quantile(0.99) as f64 / 1000.0 }
    }
}
