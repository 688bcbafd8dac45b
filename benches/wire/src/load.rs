//! Clients as tasks, each of which waits for its answer before it goes on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use benches::{
    closed_loop::{Rate, WARM_UP},
    round::Failure,
};
use hdrhistogram::Histogram;
use tokio::{task::JoinSet, time::sleep};

use crate::{clients::Client, usage::Usage};

/// What clients got in a round, and what each put took of the servers.
pub(crate) struct Round {
    pub(crate) rate: Rate,
    pub(crate) used: Usage,
}

#[derive(Default)]
struct Signals {
    timing: AtomicBool,
    stop: AtomicBool,
}

/// Runs all clients for a time. Yields what they got, and what the servers, whose usage `used` tells, needed for each put.
pub(crate) async fn rate(
    clients: Vec<Client>,
    length: Duration,
    key: impl Fn() -> Vec<u8> + Clone + Send + 'static,
    value: usize,
    used: impl Fn() -> Result<Usage, Failure>,
) -> Result<Round, Failure> {
    let signals = Arc::new(Signals::default());
    let mut tasks = JoinSet::new();
    for mut client in clients {
        let (signals, key, value) = (Arc::clone(&signals), key.clone(), vec![7; value]);
        tasks.spawn(async move {
            let mut timed = Histogram::<u64>::new(3)?;
            let mut began = Instant::now();
            // ORDERING: Relaxed for both: an operation more or less at the edges.
            while !signals.stop.load(Ordering::Relaxed) {
                client.put(key(), value.clone()).await?;
                let ended = Instant::now();
                if signals.timing.load(Ordering::Relaxed) {
                    timed.record(u64::try_from((ended - began).as_nanos())?)?;
                }
                began = ended;
            }
            Ok::<_, Failure>(timed)
        });
    }
    sleep(length.mul_f64(WARM_UP)).await;
    let before = used()?;
    let started = Instant::now();
    signals.timing.store(true, Ordering::Relaxed);
    sleep(length).await;
    signals.timing.store(false, Ordering::Relaxed);
    let elapsed = started.elapsed();
    let after = used()?;
    signals.stop.store(true, Ordering::Relaxed);
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

    #[test]
    fn puts_of_several_clients_are_counted() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let round = runtime.block_on(async {
            let address = format!("127.0.0.1:{}", servers::free_ports(1).unwrap()[0]);
            let served = tokio::spawn(ceiling::serve(address.parse().unwrap()));
            let clients = [clients::store(&address).await.unwrap(), clients::store(&address).await.unwrap()];
            let used = || usage::of(std::iter::once(std::process::id()));
            let round = rate(clients.into(), Duration::from_millis(100), || b"key".to_vec(), 150, used).await;
            served.abort();
            round.unwrap()
        });
        let Round { rate, used } = round;
        assert!(rate.per_second > 0.0 && rate.p99 > 0.0, "{rate:?}");
        assert!(used.cpu_us > 0.0 && used.switches > 0.0, "{used:?}");
    }
}
