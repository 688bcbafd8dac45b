//! What one round measured.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The shares of operations at which a round keeps its latencies, for the curves.
pub const SHARES: [f64; 17] =
    [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999];

/// The figures of one round of one mode. Times are in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Operations acknowledged within the timed window.
    pub writes: u64,
    /// Operations per second.
    pub qps: f64,
    /// Average time of an operation.
    pub average_us: f64,
    /// Median of the same.
    pub p50_us: f64,
    /// 99th percentile of the same.
    pub p99_us: f64,
    /// 99.9th percentile of the same.
    pub p999_us: f64,
    /// Latencies at [`SHARES`].
    pub at_shares_us: Vec<f64>,
    /// From the applied batch to the return of the caller's callback: average and 99th percentile.
    pub applied_to_caller_us: Spread,
    /// From the applied batch to the released latches.
    pub applied_to_released_us: Spread,
    /// CPU time of each group of threads per 1,000 operations.
    pub cpu_us_per_1000: BTreeMap<String, f64>,
    /// Context switches of all threads per operation.
    pub switches_per_write: f64,
    /// Allocations per operation, by group of threads.
    pub allocations_per_write: BTreeMap<String, f64>,
}

impl Figures {
    /// The part that the clients' latencies, in nanoseconds, say.
    #[must_use]
    pub fn of_latencies(latency: &Histogram<u64>, seconds: f64) -> Self {
        let micros = |share| latency.value_at_quantile(share) as f64 / 1000.0;
        Self {
            writes: latency.len(),
            qps: latency.len() as f64 / seconds,
            average_us: latency.mean() / 1000.0,
            p50_us: micros(0.5),
            p99_us: micros(0.99),
            p999_us: micros(0.999),
            at_shares_us: SHARES.map(micros).to_vec(),
            ..Self::default()
        }
    }

    /// A total of something, per operation.
    #[must_use]
    pub fn per_write(&self, total: f64) -> f64 {
        total / self.writes.max(1) as f64
    }
}

/// An average and a 99th percentile.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Spread {
    /// The average.
    pub average: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Spread {
    /// Of a histogram of nanoseconds, in microseconds.
    #[must_use]
    pub fn of_nanos(histogram: &Histogram<u64>) -> Self {
        Self { average: histogram.mean() / 1000.0, p99: histogram.value_at_quantile(0.99) as f64 / 1000.0 }
    }
}
