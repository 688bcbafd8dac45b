//! Opening: recovers the replica, starts its rooms, and waits until a store without others serves.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    clock,
    config::Config,
    error::{Error, OpenError},
    observe::{Observe, Observer},
    raftstore::transport::Transport,
    storage::{Parts, recover::recover, rooms::Rooms, running::Running},
};

/// Starts everything.
pub(super) fn open(
    config: Config,
    parts: Parts,
    transport: Option<Arc<dyn Transport>>,
    observe: Option<Arc<dyn Observe>>,
) -> Result<Running, OpenError> {
    let observer = observe.map(Observer::new).unwrap_or_default();
    let is_alone = transport.is_none();
    let dir = parts.dir.clone();
    let recovered = recover(&config, parts, transport, &observer)?;
    let running = Rooms::new(config, recovered, observer).start();
    let running = running.map_err(|source| OpenError::Io { path: dir, source })?;
    if is_alone {
        wait_until_serving(&running)?;
    }
    Ok(running)
}

/// Waits until this replica leads every region and has applied what their logs held: only then may it read. A long log takes its time, so
/// patience ends only where nothing moves.
fn wait_until_serving(running: &Running) -> Result<(), OpenError> {
    let timeout = running.scheduler.config.open_timeout;
    let started = Instant::now();
    let (mut index, mut moved) = (0, started);
    loop {
        if let Some(fault) = running.scheduler.fault() {
            return Err(OpenError::NotReady { waited: started.elapsed(), what: fault.to_string() });
        }
        let now = clock::now();
        if running.scheduler.reader.regions.iter().all(|region| region.lease.term_at(now).is_some()) {
            return Ok(());
        }
        let applied = (0..running.status.len()).map(|at| running.applied_index(at)).sum();
        let before = std::mem::replace(&mut index, applied);
        if index > before {
            moved = Instant::now();
        }
        if moved.elapsed() >= timeout {
            let what = Error::NotLeader { leader: None };
            let what = format!("{what}; applied up to entry {index}, all regions together");
            return Err(OpenError::NotReady { waited: started.elapsed(), what });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
