//! The life of a node, as its tasks see it: it serves, it lets what is in flight end, it stops.

use tokio::sync::watch;

/// Where a node is in its life. It never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It takes whatever comes.
    Serving,
    /// It takes no new commands, and is a full member of its group.
    Draining,
    /// Every task ends.
    Stopped,
}

/// What a task holds to learn of it.
#[derive(Clone, Debug)]
pub(crate) struct Watch(watch::Receiver<Phase>);

/// What the node holds.
#[derive(Debug)]
pub(crate) struct Lever(watch::Sender<Phase>);

/// A node that serves.
pub(crate) fn serving() -> (Lever, Watch) {
    let (sender, receiver) = watch::channel(Phase::Serving);
    (Lever(sender), Watch(receiver))
}

impl Lever {
    /// Goes on to a phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }
}

impl Watch {
    /// Whether new commands are taken.
    pub(crate) fn is_serving(&self) -> bool {
        *self.0.borrow() == Phase::Serving
    }

    /// Waits until no new commands are taken, which is before the store closes.
    pub(crate) async fn drains(&mut self) {
        let _ = self.0.wait_for(|phase| *phase >= Phase::Draining).await;
    }

    /// Waits until everything ends.
    pub(crate) async fn stopped(&mut self) {
        // A lever that is gone has stopped everything, too.
        let _ = self.0.wait_for(|phase| *phase == Phase::Stopped).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn tasks_learn_of_each_phase_and_end_with_the_lever() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (lever, watch) = serving();
        let mut of_a_task = watch.clone();
        let drains = async { tokio::time::timeout(Duration::ZERO, watch.clone().drains()).await };
        assert!(runtime.block_on(drains).is_err());
        lever.enter(Phase::Draining);
        runtime.block_on(watch.clone().drains());
        let stopped = of_a_task.stopped();
        assert!(runtime.block_on(async { tokio::time::timeout(Duration::ZERO, stopped).await }).is_err());
        lever.enter(Phase::Stopped);
        runtime.block_on(of_a_task.stopped());
        let (lever, mut watch) = serving();
        drop(lever);
        runtime.block_on(watch.stopped());
    }
}
