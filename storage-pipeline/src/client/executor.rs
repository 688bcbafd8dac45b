//! What a transaction stands on: somebody who executes commands, in this process or on a cluster. Hands the steps of a
//! transaction their outcomes.

use std::{future::Future, time::Duration};

use crate::{command::Request, error::Outcome, region::Regions};

/// Executes commands. Each is answered once, with one of the three kinds of outcome.
pub trait Executor: Send + Sync {
    /// Runs a command and waits for its outcome.
    fn execute<R: Request>(&self, request: R) -> impl Future<Output = Outcome<R::Output>> + Send;

    /// A timestamp greater than every one that was given out before.
    fn timestamp(&self) -> impl Future<Output = Outcome<u64>> + Send;

    /// Waits for nothing but time.
    fn pause(&self, pause: Duration) -> impl Future<Output = ()> + Send;

    /// The regions of the store.
    fn regions(&self) -> &Regions;

    /// How long a transaction tries to get past a lock of another one.
    fn timeout(&self) -> Duration;
}
