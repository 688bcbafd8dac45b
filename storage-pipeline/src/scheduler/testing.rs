//! What a task is that a test needs, where it does not say otherwise.

use std::time::{Duration, Instant};

use super::task::{Phase, TaskContext};

/// A command of the first region that holds these latches, and has time.
pub(crate) fn context(hashes: &[u64]) -> TaskContext {
    TaskContext {
        cid: 1,
        region: 1,
        epoch: None,
        hashes: hashes.into(),
        deadline: Instant::now() + Duration::from_secs(60),
        bytes: 1,
        phase: Phase::default(),
    }
}
