//! One timed round: clients insert rows through two-phase commit into a store in one completion mode.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use storage_pipeline::{
    CompletionMode, Config, Storage,
    command::KvPair,
    observe::{Moment, Observe},
    storage::Parts,
};

use crate::{
    cpu::CpuTimes,
    figures::{Figures, Spread},
    rows::RowId,
};

/// Share of the round that runs before the timing starts.
const WARM_UP: f64 = 0.15;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// Data directory, which lives on from round to round.
    pub dir: &'a Path,
    /// Who tells the caller and who releases.
    pub mode: CompletionMode,
    /// Number of clients, each with one transaction at a time.
    pub clients: u32,
    /// Number of the first client: no two rounds on one directory share one.
    pub first_client: u32,
    /// Length of the timed window.
    pub length: Duration,
}

/// What came of it: the figures, and the rows that were acknowledged.
#[derive(Debug)]
pub struct Ran {
    /// The figures.
    pub figures: Figures,
    /// For each client its number and how many rows were acknowledged, from number zero on.
    pub acknowledged: Vec<(u32, u32)>,
}

/// Any failure of a round.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Round<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// The first refusal of the store. Rows have one writer each, so none is expected.
    pub fn run(&self) -> Result<Ran, Failure> {
        let mut config = Config::new(self.dir);
        config.completion_mode = self.mode;
        let watch = Arc::new(AfterApply::default());
        let parts = Parts::on_disk(&config.dir)?;
        let storage = Storage::open_with(config, parts, Some(Arc::clone(&watch) as Arc<dyn Observe>))?;
        let (timing, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let mut cpu = None;
        let mut elapsed = Duration::ZERO;
        let clients: Result<Vec<_>, Failure> = thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients)
                .map(|n| {
                    let client = self.first_client + n;
                    let (storage, timing, stop) = (&storage, &timing, &stop);
                    scope.spawn(move || insert(storage, client, timing, stop))
                })
                .collect();
            thread::sleep(self.length.mul_f64(WARM_UP));
            let before = CpuTimes::now();
            let started = Instant::now();
            watch.timing.store(true, Ordering::Relaxed);
            timing.store(true, Ordering::Relaxed);
            thread::sleep(self.length);
            timing.store(false, Ordering::Relaxed);
            watch.timing.store(false, Ordering::Relaxed);
            elapsed = started.elapsed();
            cpu = before.zip(CpuTimes::now());
            stop.store(true, Ordering::Relaxed);
            clients.into_iter().map(|client| client.join().expect("clients return their errors")).collect()
        });
        let clients = clients?;
        storage.close();
        let mut latency = Histogram::new(3)?;
        for client in &clients {
            latency.add(&client.latency)?;
        }
        let writes = latency.len();
        let spent = cpu.map(|(before, after)| after.micros_since(&before)).unwrap_or_default();
        let figures = Figures {
            writes,
            qps: writes as f64 / elapsed.as_secs_f64(),
            average_us: latency.mean() / 1000.0,
            p99_us: latency.value_at_quantile(0.99) as f64 / 1000.0,
            applied_to_caller_us: watch.spread(&watch.told),
            applied_to_released_us: watch.spread(&watch.released),
            cpu_us_per_1000: spent
                .into_iter()
                .map(|(k, us)| (k, us * 1000.0 / writes.max(1) as f64))
                .collect(),
        };
        let acknowledged = clients.into_iter().map(|client| (client.client, client.rows)).collect();
        Ok(Ran { figures, acknowledged })
    }
}

struct Client {
    client: u32,
    rows: u32,
    latency: Histogram<u64>,
}

/// One client: a row at a time until told to stop.
fn insert(storage: &Storage, client: u32, timing: &AtomicBool, stop: &AtomicBool) -> Result<Client, Failure> {
    let mut latency = Histogram::new(3)?;
    let mut rows = 0;
    while !stop.load(Ordering::Relaxed) {
        let row = RowId { client, number: rows }.row();
        let started = Instant::now();
        let timed = timing.load(Ordering::Relaxed);
        let mut transaction = storage.begin().into_result()?;
        transaction.insert(&row.record_key, &row.record);
        transaction.insert(&row.index_key, &row.index);
        transaction.commit()?;
        rows += 1;
        if timed && timing.load(Ordering::Relaxed) {
            latency.record(u64::try_from(started.elapsed().as_nanos())?)?;
        }
    }
    Ok(Client { client, rows, latency })
}

/// Reads every acknowledged row back, in pages by key.
///
/// # Errors
/// The first row that is missing or has another content.
pub fn read_back(dir: &Path, mode: CompletionMode, acknowledged: &[(u32, u32)]) -> Result<u64, Failure> {
    let mut config = Config::new(dir);
    config.completion_mode = mode;
    let storage = Storage::open(config)?;
    let reader = storage.begin().into_result()?;
    let mut found = std::collections::HashMap::new();
    let mut start = Vec::new();
    loop {
        let page = reader.scan(&start, &[], 1024)?;
        let Some(KvPair { key, .. }) = page.last() else { break };
        start = [key.as_slice(), &[0]].concat();
        found.extend(page.into_iter().map(|pair| (pair.key, pair.value)));
    }
    let mut rows = 0;
    for &(client, count) in acknowledged {
        for number in 0..count {
            let row = RowId { client, number }.row();
            let is_there = found.get(&row.record_key) == Some(&row.record)
                && found.get(&row.index_key) == Some(&row.index);
            if !is_there {
                return Err(
                    format!("{mode}: acknowledged row {number} of client {client} is not there").into()
                );
            }
            rows += 1;
        }
    }
    storage.close();
    Ok(rows)
}

/// Watches what happens after a batch is applied.
struct AfterApply {
    timing: AtomicBool,
    told: Mutex<Histogram<u64>>,
    released: Mutex<Histogram<u64>>,
}

impl Default for AfterApply {
    fn default() -> Self {
        let histogram = || Mutex::new(Histogram::new(3).expect("three digits are allowed"));
        Self { timing: AtomicBool::new(false), told: histogram(), released: histogram() }
    }
}

impl AfterApply {
    fn spread(&self, histogram: &Mutex<Histogram<u64>>) -> Spread {
        Spread::of_nanos(&histogram.lock().expect("recording does not panic"))
    }
}

impl Observe for AfterApply {
    fn moment(&self, moment: Moment) {
        let (histogram, applied_at) = match moment {
            Moment::CallerTold { applied_at: Some(at), .. } => (&self.told, at),
            Moment::Released { applied_at: Some(at), .. } => (&self.released, at),
            _ => return,
        };
        if self.timing.load(Ordering::Relaxed) {
            let nanos = u64::try_from(applied_at.elapsed().as_nanos()).unwrap_or(u64::MAX);
            // A histogram that grows by itself records any number.
            let _ = histogram.lock().expect("recording does not panic").record(nanos);
        }
    }
}
