//! The check of a store that is stopped: what a start would make of it, and whether every record can be read and has what
//! belongs to it. It works on a copy, so the directory stays as it is; nobody can start the store meanwhile.

mod copy;
mod finding;
mod records;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

pub use finding::{CheckError, CheckReport, CheckedRegion, Finding};

use crate::{
    apply::state::ApplyState,
    config::Config,
    engine::{Cf, Engine, region::RegionEngine},
    error::OpenError,
    raftstore::transport::{Message, Transport},
    region::Regions,
    storage::{
        Parts, Storage,
        identity::{stored_identity, stored_split_keys},
        parts::kind_in,
    },
};
use copy::StoreCopy;

/// Nobody is to hear of this start.
struct Silence;

impl Transport for Silence {
    fn send(&self, _: u64, _: Vec<Message>) {}
}

/// Checks the store in `dir`. What is needed for that is made in `scratch`, best on the same file system, and removed again.
///
/// # Errors
/// Why nothing can be said of the store: it runs, it is not there, or the copy cannot be made. A store that does not start is a
/// [`Finding`].
pub fn check(dir: &Path, scratch: &Path) -> Result<CheckReport, CheckError> {
    if !dir.join("data").is_dir() {
        return Err(CheckError::NoStore { path: dir.to_owned() });
    }
    let copy = StoreCopy::of(dir, scratch)?;
    let mut report = CheckReport::default();
    if let Err(error) = look(copy.path(), &mut report) {
        report.findings.push(Finding::DoesNotStart(error));
    }
    Ok(report)
}

fn look(dir: &Path, report: &mut CheckReport) -> Result<(), OpenError> {
    let kind = kind_in(dir)?;
    let parts = Parts::on_disk_with(dir, kind)?;
    let engine = Arc::clone(&parts.engine);
    let corrupt = |error: crate::Error| OpenError::Corrupt { path: dir.to_owned(), what: error.to_string() };
    let Some(owner) = stored_identity(&*engine.snapshot()).map_err(corrupt)? else {
        // The first start did not come as far as to write anything.
        return Ok(());
    };
    let mut config = Config::new(dir);
    config.raft_log = kind;
    config.replica_id = owner.node_id;
    config.voters = vec![owner.node_id];
    config.split_keys = stored_split_keys(&*engine.snapshot()).map_err(corrupt)?;
    // It is to apply what is committed and nothing more, so it is given no time for an election.
    config.tick = Duration::from_secs(10);
    let regions = Regions::split_at(&config.split_keys);
    let mut seen = Vec::new();
    for region in regions.all() {
        let own = RegionEngine::new(Arc::clone(&engine), region);
        seen.push(ApplyState::load(&*own.snapshot()).map_err(corrupt)?.index);
    }
    report.owner = Some(owner);
    start(config, parts, &seen, report)?;
    let view = engine.snapshot();
    for cf in [Cf::Default, Cf::Lock, Cf::Write, Cf::Raw] {
        let count = records::check(&*view, cf, &mut report.findings);
        report.keys.push((cf, count.map_err(corrupt)?));
    }
    Ok(())
}

/// Starts the replica with nobody to talk to, until it has applied again what it had, and closes it.
fn start(config: Config, parts: Parts, seen: &[u64], report: &mut CheckReport) -> Result<(), OpenError> {
    let patience = config.open_timeout;
    let storage = Storage::open_replica(config, parts, Arc::new(Silence), None)?;
    let applied = || storage.regions().map(|region| region.applied_index());
    let (mut sum, mut moved) = (0, Instant::now());
    while storage.fault().is_none()
        && applied().zip(seen).any(|(applied, seen)| applied < *seen)
        && moved.elapsed() < patience
    {
        std::thread::sleep(Duration::from_millis(1));
        let now = applied().sum();
        if std::mem::replace(&mut sum, now) < now {
            moved = Instant::now();
        }
    }
    for (region, seen) in storage.regions().zip(seen) {
        let (id, applied_index) = (region.range().id, region.applied_index());
        if applied_index < *seen {
            report.findings.push(Finding::NotAppliedAgain { region: id, applied_index, seen: *seen });
        }
        report.regions.push(CheckedRegion { id, applied_index, term: region.status().term });
    }
    report.findings.extend(storage.fault().map(Finding::Fault));
    storage.close();
    Ok(())
}
