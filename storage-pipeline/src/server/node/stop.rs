//! How a node ends: it lets what is in flight end, gives up what it leads, closes its store and then its connections.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use super::Node;
use crate::{raftstore::status::Role, server::phase::Phase};

/// How long a leader that stops waits for another one to take over.
const HAND_OVER: Duration = Duration::from_secs(1);
/// How long connections may take to end, and tasks after them.
const HANG_UP: Duration = Duration::from_secs(2);

impl Node {
    /// Stops the node: it takes no new commands, lets what is in flight end for at most [`NodeConfig::drain_timeout`], gives the
    /// leadership up if it has it, closes the store and ends its connections.
    ///
    /// [`NodeConfig::drain_timeout`]: crate::server::NodeConfig::drain_timeout
    pub fn stop(mut self) {
        let in_flight = self.storage.in_flight().commands;
        tracing::info!(in_flight, "the node takes nothing new and ends what it has");
        self.lever.enter(Phase::Draining);
        wait_until(self.drain_timeout, || self.storage.in_flight().commands == 0);
        self.hand_over();
        self.end();
    }

    /// Asks the others to take over what this node leads, one after the other: one of them may be down.
    fn hand_over(&self) {
        let own = self.storage.status().replica;
        let led = || self.storage.regions().filter(|region| region.status().role == Role::Leader);
        let voters = led().filter_map(|region| region.members().ok()).flat_map(|members| members.voters);
        let others: BTreeSet<_> = voters.filter(|voter| *voter != own).collect();
        for other in others {
            led().for_each(|region| region.transfer_leader(other));
            wait_until(HAND_OVER, || led().next().is_none());
        }
    }

    /// Closes the store, which answers everybody, and then lets the connections bring the answers home.
    fn end(&mut self) {
        self.lever.enter(Phase::Draining);
        self.storage.close();
        self.lever.enter(Phase::Stopped);
        let Some(runtime) = self.runtime.take() else { return };
        tracing::info!("the store is closed, and the node ends");
        if let Some(server) = self.server.take()
            && let Ok(Ok(Err(error))) = runtime.block_on(async { timeout(HANG_UP, server).await })
        {
            tracing::error!(%error, "the server had failed");
        }
        runtime.shutdown_timeout(HANG_UP);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until something holds, at most so long.
fn wait_until(most: Duration, holds: impl Fn() -> bool) {
    let until = Instant::now() + most;
    while !holds() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
}
