//! A round: everything that raft asks for at one time, of all regions of a store, with one log write and one sync for all
//! of it. Pure but for the log, which it writes.

use crate::{
    engine::EngineError,
    planted::planted,
    raftstore::peer::{Effects, Peer},
};

/// Does everything that raft asks for now, of all peers of a store. One log write and one sync cover all that was proposed
/// to any of them before. `part` takes a peer and its effects out of whatever holds them.
///
/// # Errors
/// The log's refusal. The peers must not be used any more: raft has not been told.
pub(crate) fn round<T>(
    all: &mut [T],
    part: impl Fn(&mut T) -> (&mut Peer, &mut Effects),
) -> Result<(), EngineError> {
    all.iter_mut().for_each(|each| part(each).0.ask_reads());
    loop {
        let mut any = false;
        for (peer, effects) in all.iter_mut().map(&part) {
            any |= peer.begin(effects)?;
        }
        if !any {
            return Ok(());
        }
        write(all, &part)?;
        for (peer, effects) in all.iter_mut().map(&part) {
            peer.go_on(effects);
        }
    }
}

/// Writes what all peers have begun, at once.
fn write<T>(all: &mut [T], part: &impl Fn(&mut T) -> (&mut Peer, &mut Effects)) -> Result<(), EngineError> {
    if let [alone] = all {
        return part(alone).0.node.mut_store().write_staged();
    }
    let logs = all.iter_mut().map(|each| part(each).0.node.store()).collect::<Vec<_>>();
    let writes: Vec<_> = logs.iter().filter_map(|log| log.staged()).collect();
    let Some(log) = logs.first().filter(|_| !writes.is_empty()) else { return Ok(()) };
    let count = if planted!(WritesOneRegion) { 1 } else { writes.len() };
    let result = log.engine().write(&writes[..count]);
    all.iter_mut().for_each(|each| part(each).0.node.mut_store().written(&result));
    result
}

impl Peer {
    /// The same for one peer.
    ///
    /// # Errors
    /// As [`round`].
    #[cfg(test)]
    pub(crate) fn round(&mut self, effects: &mut Effects) -> Result<(), EngineError> {
        round(&mut [(self, effects)], |(peer, effects)| (peer, effects))
    }
}
