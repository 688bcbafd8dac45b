//! A seeded simulator of whole clusters: the scheduler, latches, lease, peer and apply code of every replica in one
//! thread and in virtual time, over disks that lose what was not synced and a network that loses what it likes.
//!
//! Everything follows from the seed, so a seed that fails fails again. What runs is what ships: each room's turn is the
//! body of the loop that its thread runs. What the simulator replaces is what surrounds the rooms: threads, clock, disks,
//! network. It cannot see what happens between two instructions of one turn; loom and the stress tests look there.
//!
//! ```
//! use storage_pipeline::simulator::{Options, run};
//! let report = run(&Options::seed(7)).expect("no invariant is violated");
//! assert!(report.steps > 1000);
//! assert_eq!(report.digest, run(&Options::seed(7)).unwrap().digest);
//! ```

use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

pub use crate::planted::Planted;
use crate::{completion_mode::CompletionMode, planted};

mod bank;
mod disk;
mod event;
mod invariants;
mod life;
mod network;
mod node;
mod port;
mod random;
mod raw_client;
mod trace;
mod weather;
mod world;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Everything that happens follows from it.
    pub seed: u64,
    /// Whether a [`Report`] or a [`Failure`] tells all that happened.
    pub trace: bool,
    /// A fault to plant in the pipeline, to see whether it is found.
    pub planted: Option<Planted>,
}

impl Options {
    /// This seed, nothing planted, no trace.
    #[must_use]
    pub const fn seed(seed: u64) -> Self {
        Self { seed, trace: false, planted: None }
    }
}

/// What a run without a violation came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Replicas in the cluster.
    pub replicas: u64,
    /// Regions of each.
    pub regions: usize,
    /// The completion mode of all of them.
    pub mode: CompletionMode,
    /// Turns, arrivals and whatever else happened.
    pub steps: u64,
    /// How long it all took in the cluster's own time.
    pub virtual_time: Duration,
    /// Raw commands whose history is linearizable.
    pub raw_commands: usize,
    /// Transactions that wrote.
    pub transactions: usize,
    /// Messages that were lost on their way.
    pub messages_lost: u64,
    /// Messages that arrived twice.
    pub messages_doubled: u64,
    /// Snapshots of other replicas that replaced a replica's data.
    pub snapshots: u64,
    /// What went wrong, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// A digest of the run: two runs of one seed have the same.
    pub digest: u64,
    /// All that happened, where it was asked for.
    pub trace: Vec<String>,
}

/// An invariant was violated.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed that shows it.
    pub seed: u64,
    /// What was planted.
    pub planted: Option<Planted>,
    /// Name of the invariant.
    pub invariant: &'static str,
    /// What contradicts it.
    pub what: String,
    /// All that happened before, where it was asked for.
    pub trace: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, planted, invariant, what, .. } = self;
        writeln!(f, "{invariant}: {what}")?;
        write!(
            f,
            "replay it with: cargo run --release -p storage-pipeline --features simulator --bin simulator -- "
        )?;
        write!(f, "--seed {seed} --trace")?;
        planted.map_or(Ok(()), |planted| write!(f, " --planted {planted}"))
    }
}

impl std::error::Error for Failure {}

/// Simulates one cluster from its first start until all is at rest. The current thread must run nothing else of this
/// crate meanwhile.
///
/// # Errors
/// The first invariant that was violated. A panic of the simulated code is one too.
pub fn run(options: &Options) -> Result<Report, Box<Failure>> {
    planted::plant(options.planted);
    let mut world = world::World::new(options);
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    let ended = ended.unwrap_or_else(|payload| {
        Err(world::Violation { invariant: "no panic", what: words(&*payload).to_owned() })
    });
    let result = ended.map_err(|world::Violation { invariant, what }| {
        let trace = world.take_trace();
        Box::new(Failure { seed: options.seed, planted: options.planted, invariant, what, trace })
    });
    drop(world);
    planted::plant(None);
    result
}

/// What a panic said.
fn words(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}
