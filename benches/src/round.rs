//! One timed round: clients do one thing again and again on a store in one completion mode.

use std::{
    path::Path,
    sync::Arc,
    thread::{self, ScopedJoinHandle},
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use storage_pipeline::{CompletionMode, Config, Storage, command::KvPair, observe::Observe, storage::Parts};

use crate::{
    allocations::Allocations,
    cpu::{CpuTimes, context_switches},
    figures::Figures,
    rows::RowId,
    watch::AfterApply,
    window::{WARM_UP, Window},
    workload::{Client, Condition, Workload, Zipf, prepare_scans, scan_once},
};

/// What a callback takes where callbacks are slow.
const SLOW_CALLBACK: Duration = Duration::from_micros(50);

/// Scans in flight where the workers are saturated: some wait for each worker of the default two.
const SCANNERS: u32 = 4;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// Data directory, which lives on from round to round.
    pub dir: &'a Path,
    /// Who tells the caller and who releases.
    pub mode: CompletionMode,
    /// What each client does.
    pub workload: Workload,
    /// What else goes on.
    pub condition: Condition,
    /// Number of clients, each with one operation at a time.
    pub clients: u32,
    /// Operations that arrive per second, whatever becomes of those before; `None` where each client sends its next
    /// one when it has the answer to the last.
    pub arrivals: Option<f64>,
    /// Number of the first client: no two rounds on one directory share one.
    pub first_client: u32,
    /// Length of the timed window. One in which no operation ends says nothing, and lasts until one has.
    pub length: Duration,
}

/// What came of it: the figures, and the rows that were acknowledged.
#[derive(Debug)]
pub struct Ran {
    /// The figures.
    pub figures: Figures,
    /// For each client its number and how many operations were acknowledged, from number zero on.
    pub acknowledged: Vec<(u32, u32)>,
}

/// Any failure of a round.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What one client leaves.
struct Done {
    client: u32,
    operations: u32,
    latency: Histogram<u64>,
}

type Clients<'scope> = Vec<ScopedJoinHandle<'scope, Result<Done, Failure>>>;

impl Round<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// The first refusal of the store. None is expected of any workload.
    pub fn run(&self) -> Result<Ran, Failure> {
        let mut config = Config::new(self.dir);
        config.completion_mode = self.mode;
        let slow = self.condition == Condition::SlowCallbacks;
        let watch = Arc::new(AfterApply::new(if slow { SLOW_CALLBACK } else { Duration::ZERO }));
        let parts = Parts::on_disk(&config.dir)?;
        let storage = Storage::open_with(config, parts, Some(Arc::clone(&watch) as Arc<dyn Observe>))?;
        let busy = self.condition == Condition::BusyWorkers;
        if busy {
            prepare_scans(&storage)?;
        }
        let (window, zipf) = (Window::default(), Zipf::default());
        let measured = thread::scope(|scope| {
            let (storage, window, zipf) = (&storage, &window, &zipf);
            let scanners = if busy { SCANNERS } else { 0 };
            let scanners: Vec<_> = (0..scanners).map(|_| scope.spawn(|| scan(storage, window))).collect();
            let clients = (0..self.clients)
                .map(|nth| scope.spawn(move || self.client(nth, storage, window, zipf)))
                .collect();
            let measured = self.measure(&watch, window, clients);
            scanners.into_iter().try_for_each(|scanner| scanner.join().expect("scanners do not panic"))?;
            measured
        });
        storage.close();
        measured
    }

    /// Waits for the window to pass and reads the meters at both of its ends.
    fn measure(&self, watch: &AfterApply, window: &Window, clients: Clients<'_>) -> Result<Ran, Failure> {
        thread::sleep(self.length.mul_f64(WARM_UP));
        let meters = || (CpuTimes::now(), context_switches(), Allocations::now());
        let before = meters();
        let started = Instant::now();
        watch.set_timing(true);
        window.open();
        thread::sleep(self.length);
        window.wait_seen(|| clients.iter().any(|client| !client.is_finished()));
        window.close();
        watch.set_timing(false);
        let seconds = started.elapsed().as_secs_f64();
        let after = meters();
        window.end();
        let (mut latency, mut acknowledged) = (Histogram::new(3)?, Vec::new());
        for client in clients {
            let Done { client, operations, latency: own } = client.join().expect("clients do not panic")?;
            latency.add(&own)?;
            acknowledged.push((client, operations));
        }
        let mut figures = Figures::of_latencies(&latency, seconds);
        figures.applied_to_caller_us = watch.applied_to_caller();
        figures.applied_to_released_us = watch.applied_to_released();
        let cpu = before.0.zip(after.0).map(|(before, after)| after.micros_since(&before));
        let cpu = cpu.unwrap_or_default().into_iter();
        figures.cpu_us_per_1000 = cpu.map(|(k, us)| (k.to_owned(), figures.per_write(us * 1000.0))).collect();
        figures.switches_per_write = figures.per_write(after.1.saturating_sub(before.1) as f64);
        let made = after.2.since(&before.2).into_iter();
        figures.allocations_per_write =
            made.map(|(k, n)| (k.to_owned(), figures.per_write(n as f64))).collect();
        Ok(Ran { figures, acknowledged })
    }

    /// One client, until told to stop. Where operations arrive by a clock, the time of one begins when it was to
    /// arrive, however late its client came to it: a stall counts for everybody who would have met it.
    fn client(&self, nth: u32, storage: &Storage, window: &Window, zipf: &Zipf) -> Result<Done, Failure> {
        let mut latency = Histogram::new(3)?;
        let number = self.first_client + nth;
        let mut client = Client::new(storage, self.workload, zipf, number);
        let gap = self.arrivals.map(|rate| Duration::from_secs_f64(f64::from(self.clients) / rate));
        let mut due =
            Instant::now() + gap.unwrap_or_default().mul_f64(f64::from(nth) / f64::from(self.clients));
        while !window.is_over() {
            if gap.is_some() {
                thread::sleep(due.saturating_duration_since(Instant::now()));
            } else {
                due = Instant::now();
            }
            let timed = window.is_open();
            client.step()?;
            if timed && window.is_open() {
                window.record(&mut latency, due.elapsed())?;
            }
            due += gap.unwrap_or_default();
        }
        Ok(Done { client: number, operations: client.done(), latency })
    }
}

fn scan(storage: &Storage, window: &Window) -> Result<(), Failure> {
    while !window.is_over() {
        scan_once(storage)?;
    }
    Ok(())
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
