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

use crate::clients::Client;

#[derive(Default)]
struct Signals {
    timing: AtomicBool,
    stop: AtomicBool,
}

/// Runs all clients for a time.
pub(crate) async fn rate(
    clients: Vec<Client>,
    length: Duration,
    key: impl Fn() -> Vec<u8> + Clone + Send + 'static,
    value: usize,
) -> Result<Rate, Failure> {
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
    let started = Instant::now();
    signals.timing.store(true, Ordering::Relaxed);
    sleep(length).await;
    signals.timing.store(false, Ordering::Relaxed);
    let elapsed = started.elapsed();
    signals.stop.store(true, Ordering::Relaxed);
    let mut all = Histogram::<u64>::new(3)?;
    while let Some(done) = tasks.join_next().await {
        all += done??;
    }
    Ok(Rate::of(&all, elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ceiling, clients, servers};

    #[test]
    fn puts_of_several_clients_are_counted() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let rate = runtime.block_on(async {
            let address = format!("127.0.0.1:{}", servers::free_ports(1).unwrap()[0]);
            let served = tokio::spawn(ceiling::serve(address.parse().unwrap()));
            let clients = [clients::store(&address).await.unwrap(), clients::store(&address).await.unwrap()];
            let rate = rate(clients.into(), Duration::from_millis(100), || b"key".to_vec(), 150).await;
            served.abort();
            rate.unwrap()
        });
        assert!(rate.per_second > 0.0 && rate.p99 > 0.0, "{rate:?}");
    }
}
