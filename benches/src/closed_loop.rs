//! Clients that each wait for their answer before they go on, for a time: what all of them get, and how long one waits.

use std::{
    thread,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;

use crate::{
    round::Failure,
    window::{WARM_UP, Window},
};

/// What clients that wait for their answers got.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Operations per second of all of them.
    pub per_second: f64,
    /// The time within which an operation was answered on average, in microseconds.
    pub average: f64,
    /// The time within which 99 of 100 operations were answered, in microseconds.
    pub p99: f64,
}

impl Rate {
    /// What was timed, in nanoseconds, within a length of time.
    #[must_use]
    pub fn of(timed: &Histogram<u64>, length: Duration) -> Self {
        let per_second = timed.len() as f64 / length.as_secs_f64();
        Self { per_second, average: timed.mean() / 1e3, p99: timed.value_at_quantile(0.99) as f64 / 1e3 }
    }
}

/// Runs a number of clients. Each calls `make` once and then its result, over and over. A window in which no operation ends
/// says nothing, so it lasts until one has.
///
/// # Errors
/// The first failure of an operation.
pub fn rate<C: FnMut() -> Result<(), Failure>>(
    clients: u64,
    length: Duration,
    make: impl Fn(u64) -> C + Sync,
) -> Result<Rate, Failure> {
    let (window, make) = (&Window::default(), &make);
    thread::scope(|scope| {
        let clients = (0..clients)
            .map(|number| {
                scope.spawn(move || {
                    let mut client = make(number);
                    let mut timed = Histogram::<u64>::new(3)?;
                    let mut began = Instant::now();
                    // At least one operation each, so that a failure shows however short the round is.
                    loop {
                        client()?;
                        let ended = Instant::now();
                        if window.is_open() {
                            window.record(&mut timed, ended - began)?;
                        }
                        began = ended;
                        if window.is_over() {
                            return Ok::<_, Failure>(timed);
                        }
                    }
                })
            })
            .collect::<Vec<_>>();
        thread::sleep(length.mul_f64(WARM_UP));
        let started = Instant::now();
        window.open();
        thread::sleep(length);
        window.wait_seen(|| clients.iter().any(|client| !client.is_finished()));
        window.close();
        let elapsed = started.elapsed();
        window.end();
        let mut all = Histogram::<u64>::new(3)?;
        for client in clients {
            all += client.join().map_err(|_| "a client panicked")??;
        }
        Ok(Rate::of(&all, elapsed))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lasts_until_it_has_seen_something() {
        let slow = rate(1, Duration::from_millis(1), |_| {
            || {
                thread::sleep(Duration::from_millis(30));
                Ok(())
            }
        });
        let Rate { per_second, p99, .. } = slow.unwrap();
        assert!(per_second > 0.0 && p99 >= 29_000.0, "{per_second} {p99}");
    }

    #[test]
    fn what_clients_do_is_counted_and_a_failure_ends_the_round() {
        let rate_of_two = rate(2, Duration::from_millis(50), |_| {
            || {
                thread::sleep(Duration::from_millis(1));
                Ok(())
            }
        });
        // Each sleeps at least a millisecond an operation.
        let Rate { per_second, p99, .. } = rate_of_two.unwrap();
        assert!(per_second > 0.0 && per_second <= 2_200.0 && p99 >= 1_000.0, "{per_second} {p99}");
        let failed = rate(3, Duration::from_millis(5), |number| {
            move || if number == 2 { Err("no more".into()) } else { Ok(()) }
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
    }
}
