//! Clients as tasks, each of which waits for its answer before it goes on.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use benches::{
    closed_loop::Rate,
    round::Failure,
    window::{A_MOMENT, WARM_UP, Window},
};
use hdrhistogram::Histogram;
use tokio::{task::JoinSet, time::sleep};

use crate::{clients::Client, usage::Usage};

/// What clients got in a round, and what each put took of the servers.
pub(crate) struct Round {
    pub(crate) rate: Rate,
    pub(crate) used: Usage,
}

/// Runs all clients for a time. Yields what they got, and what the servers, whose usage `used` tells, needed for each put.
pub(crate) async fn rate(
    clients: Vec<Client>,
    length: Duration,
    key: impl Fn() -> Vec<u8> + Clone + Send + 'static,
    value: usize,
    used: impl Fn() -> Result<Usage, Failure>,
) -> Result<Round, Failure> {
    let window = Arc::new(Window::default());
    let mut tasks = JoinSet::new();
    let mut running = Vec::new();
    for mut client in clients {
        let (window, key, value) = (Arc::clone(&window), key.clone(), vec![7; value]);
        running.push(tasks.spawn(async move {
            let mut timed = Histogram::<u64>::new(3)?;
            let mut began = Instant::now();
            // At least one put each, so that a failure shows however short the round is.
            loop {
                client.put(key(), value.clone()).await?;
                let ended = Instant::now();
                if window.is_open() {
                    window.record(&mut timed, ended - began)?;
                }
                began = ended;
                if window.is_over() {
                    return Ok::<_, Failure>(timed);
                }
            }
        }));
    }
    sleep(length.mul_f64(WARM_UP)).await;
    let before = used()?;
    let started = Instant::now();
    window.open();
    sleep(length).await;
    while !window.has_seen() && running.iter().any(|client| !client.is_finished()) {
        sleep(A_MOMENT).await;
    }
    window.close();
    let elapsed = started.elapsed();
    let after = used()?;
    window.end();
    let mut all = Histogram::<u64>::new(3)?;
    while let Some(done) = tasks.join_next().await {
        all += done??;
    }
    Ok(Round { rate: Rate::of(&all, elapsed), used: after.since(before, all.len() as f64) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ceiling, clients, servers, usage};

    /// What two clients get of an in-memory server within such a window.
    fn round_of_two(length: Duration) -> Round {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let address = format!("127.0.0.1:{}", servers::free_ports(1).unwrap()[0]);
            let served = tokio::spawn(ceiling::serve(address.parse().unwrap()));
            let clients = [clients::store(&address).await.unwrap(), clients::store(&address).await.unwrap()];
            let used = || usage::of(std::iter::once(std::process::id()));
            let round = rate(clients.into(), length, || b"key".to_vec(), 150, used).await;
            served.abort();
            round.unwrap()
        })
    }

    #[test]
    fn puts_of_several_clients_are_counted() {
        let Round { rate, used } = round_of_two(Duration::from_millis(100));
        assert!(rate.per_second > 0.0 && rate.average > 0.0 && rate.p99 > 0.0, "{rate:?}");
        assert!(used.cpu_us > 0.0 && used.switches > 0.0, "{used:?}");
    }

    #[test]
    fn a_window_lasts_until_it_has_seen_something() {
        let Round { rate, .. } = round_of_two(Duration::ZERO);
        assert!(rate.per_second > 0.0 && rate.p99 > 0.0, "{rate:?}");
    }
}
