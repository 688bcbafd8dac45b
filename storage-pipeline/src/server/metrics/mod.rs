//! What a node counts and measures: how long the stages of commands take, told by the store's moments, how requests of
//! clients end, and how full its queues are. Hands on the text that Prometheus reads.

use std::{
    cell::Cell,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::text::encode,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

mod watched;

use super::{config::NodeConfig, transport::LinkStatus};
use crate::{
    error::OutcomeKind,
    observe::{FailPoint, Moment, Observe, entries::Entries},
    raftstore::status::Role,
    storage::Storage,
};
use watched::{Stage, Watched};

/// The shortest time that is told apart, in seconds; each next bound is twice as long, up to half a minute.
const FIRST_BOUND: f64 = 4e-6;
const BOUNDS: u16 = 24;

type Labels = Vec<(&'static str, String)>;

thread_local! {
    /// When this thread began the write that it is at. A thread is at one at a time.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// All of it. It observes the store, and hands every moment on to whoever else does.
pub(crate) struct Metrics {
    registry: Registry,
    stages: Vec<Histogram>,
    requests: Family<Labels, Counter>,
    /// In the order of [`OutcomeKind::ALL`], so that counting looks nothing up.
    commands: [Counter; OutcomeKind::ALL.len()],
    gauges: Gauges,
    /// A command has its place by its number. There are more places than commands in flight, so that few lose theirs.
    watched: Box<[Mutex<Watched>]>,
    entries: Mutex<Entries>,
    next: Option<Arc<dyn Observe>>,
}

/// What is looked up when somebody reads.
#[derive(Default)]
struct Gauges {
    in_flight: Family<Labels, Gauge>,
    queued: Family<Labels, Gauge>,
    applied_index: Family<Labels, Gauge>,
    term: Family<Labels, Gauge>,
    leads: Family<Labels, Gauge>,
    link_waiting: Family<Labels, Gauge>,
    link_dropped: Family<Labels, Gauge>,
    callback_panics: Gauge,
    poisoned: Gauge,
}

impl Metrics {
    /// For a store that takes so many commands at a time.
    fn new(max_in_flight_commands: usize, next: Option<Arc<dyn Observe>>) -> Self {
        let mut registry = Registry::with_prefix("storage_pipeline");
        let histogram = || Histogram::new(exponential_buckets(FIRST_BOUND, 2.0, BOUNDS));
        let family: Family<Labels, Histogram, _> = Family::new_with_constructor(histogram);
        let stages =
            Stage::ALL.map(|(_, name)| family.get_or_create_owned(&vec![("stage", name.to_owned())]));
        let about = "Time from one moment in the life of a command or of a batch to the next";
        registry.register_with_unit("stage", about, Unit::Seconds, family);
        let about = "Requests of clients by what became of them";
        let requests = outcomes(&mut registry, "requests", about, &["refused"]);
        let about = "Commands of clients and of the process itself by what their callers were told";
        let commands = outcomes(&mut registry, "commands", about, &[]);
        let commands = OutcomeKind::ALL.map(|kind| commands.get_or_create_owned(&outcome(kind.name())));
        let gauges = Gauges::default();
        let places = max_in_flight_commands.saturating_mul(2).next_power_of_two().min(1 << 20);
        let watched = std::iter::repeat_with(Mutex::default).take(places).collect();
        gauges.register(&mut registry);
        let (stages, entries) = (stages.into(), Mutex::default());
        Self { registry, stages, requests, commands, gauges, watched, entries, next }
    }

    /// Measures a store that somebody else may observe as well, where the configuration says that somebody can read it.
    /// Yields who observes the store then.
    pub(crate) fn observing(
        config: &NodeConfig,
        observer: Option<Arc<dyn Observe>>,
    ) -> (Option<Arc<Self>>, Option<Arc<dyn Observe>>) {
        if config.status_listen.is_none() {
            return (None, observer);
        }
        let metrics = Arc::new(Self::new(config.store.max_in_flight_commands, observer));
        let observer: Arc<dyn Observe> = Arc::clone(&metrics) as _;
        (Some(metrics), Some(observer))
    }

    /// A client was answered.
    pub(crate) fn answered(&self, outcome: &'static str) {
        self.requests.get_or_create(&self::outcome(outcome)).inc();
    }

    /// All of it as Prometheus reads it.
    pub(crate) fn text(&self, storage: &Storage, links: impl Iterator<Item = LinkStatus>) -> String {
        self.gauges.look(storage, links);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes all that is written to it");
        text
    }

    fn ended(&self, stage: Stage, took: Duration) {
        self.stages[stage as usize].observe(took.as_secs_f64());
    }

    /// A command passes a moment that is its own or of its entry.
    fn pass(&self, cid: u64, moment: Moment, now: Instant) {
        let place = &self.watched[cid as usize & (self.watched.len() - 1)];
        let passed = place.lock().pass(cid, moment, now);
        if let Some((stage, took)) = passed {
            self.ended(stage, took);
        }
    }
}

fn outcome(outcome: &str) -> Labels {
    vec![("outcome", outcome.to_owned())]
}

/// Counters by outcome, which are there before anything is counted.
fn outcomes(
    registry: &mut Registry,
    name: &str,
    about: &str,
    others: &[&'static str],
) -> Family<Labels, Counter> {
    let family: Family<Labels, Counter> = Family::default();
    for outcome in OutcomeKind::ALL.map(OutcomeKind::name).iter().chain(others) {
        drop(family.get_or_create(&self::outcome(outcome)));
    }
    registry.register(name, about, family.clone());
    family
}

impl Gauges {
    fn register(&self, registry: &mut Registry) {
        let families = [
            ("in_flight", "What is in flight: commands, their bytes, latches, messages", &self.in_flight),
            ("queued", "Messages that wait for the threads of a room", &self.queued),
            ("applied_index", "Index of the last applied entry of a region", &self.applied_index),
            ("term", "Term of a region, as this node knows it", &self.term),
            ("leads", "1 where this node leads the region, else 0", &self.leads),
            ("link_waiting", "Messages that wait for the connection to another node", &self.link_waiting),
            ("link_dropped", "Messages to another node that were dropped", &self.link_dropped),
        ];
        for (name, about, family) in families {
            registry.register(name, about, family.clone());
        }
        registry.register("callback_panics", "Callbacks that panicked", self.callback_panics.clone());
        registry.register("poisoned", "1 where a fault has stopped the store, else 0", self.poisoned.clone());
    }

    fn look(&self, storage: &Storage, links: impl Iterator<Item = LinkStatus>) {
        let set = |family: &Family<Labels, Gauge>, label: &'static str, of: String, value: u64| {
            family.get_or_create(&vec![(label, of)]).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let counts = storage.in_flight();
        for (what, count) in [
            ("commands", counts.commands),
            ("bytes", counts.bytes),
            ("latches_held", counts.latches_held),
            ("latches_waiting", counts.latches_waiting),
        ] {
            set(&self.in_flight, "what", what.to_owned(), count as u64);
        }
        for (room, count) in storage.queued() {
            set(&self.queued, "room", room.to_owned(), count as u64);
        }
        for region in storage.regions() {
            let (id, status) = (region.range().id.to_string(), region.status());
            set(&self.applied_index, "region", id.clone(), region.applied_index());
            set(&self.term, "region", id.clone(), status.term);
            set(&self.leads, "region", id, u64::from(status.role == Role::Leader));
        }
        for link in links {
            set(&self.link_waiting, "peer", link.peer.to_string(), link.waiting as u64);
            set(&self.link_dropped, "peer", link.peer.to_string(), link.dropped);
        }
        self.callback_panics.set(i64::try_from(storage.callback_panics()).unwrap_or(i64::MAX));
        self.poisoned.set(storage.fault().is_some().into());
    }
}

impl Observe for Metrics {
    fn moment(&self, moment: Moment) {
        let now = Instant::now();
        match moment {
            // One write of the log can be that of several regions, each of which says so twice: it lasts from the first word
            // of its beginning to the first of its end.
            Moment::LogWriting { .. } | Moment::Applying { .. } => BEGAN.set(BEGAN.get().or(Some(now))),
            Moment::LogWritten { .. } | Moment::Applied { .. } => {
                let stage = match moment {
                    Moment::LogWritten { synced: true, .. } => Stage::LogSync,
                    Moment::LogWritten { .. } => Stage::LogWrite,
                    _ => Stage::Apply,
                };
                if let Some(began) = BEGAN.take() {
                    self.ended(stage, now.saturating_duration_since(began));
                }
            }
            Moment::CallerTold { outcome, .. } => {
                self.commands[outcome as usize].inc();
            }
            _ => {}
        }
        moment.cid().into_iter().for_each(|cid| self.pass(cid, moment, now));
        let concerned = self.entries.lock().pass(moment);
        concerned.into_iter().for_each(|cid| self.pass(cid, moment, now));
        if let Some(next) = &self.next {
            next.moment(moment);
        }
    }

    fn fails(&self, point: FailPoint) -> bool {
        self.next.as_ref().is_some_and(|next| next.fails(point))
    }
}
