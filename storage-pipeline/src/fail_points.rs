//! An observer that asks the crate `fail` at every moment and every place of [`observe`](crate::observe), so that a test or
//! an environment variable can hold, delay or break a store at any of them.

use std::{fmt, sync::Arc};

use fail::fail_point;

use crate::observe::{FailPoint, Moment, Observe};

/// Every [`Moment`] and every [`FailPoint`] as a fail point of the crate `fail`. Its name is `storage_pipeline::` and the name
/// of the moment or place; `docs/testing.md` lists them. A store is given it as its observer.
///
/// At a moment a thread can be made to sleep, to wait, to print or to panic. `return` belongs to the places only, and makes the
/// step fail; at a moment it panics. One store of a process cannot be told from another: `fail` keeps one registry for all.
///
/// ```
/// use std::sync::Arc;
/// use storage_pipeline::{Config, Error, Outcome, Storage, fail_points::FailPoints, storage::Parts};
///
/// // Takes what the environment variable FAILPOINTS says, and takes it back at its end.
/// let scenario = fail::FailScenario::setup();
/// let dir = tempfile::tempdir()?;
/// let config = Config::new(dir.path());
/// let parts = Parts::on_disk(&config.dir)?;
/// let storage = Storage::open_with(config, parts, Some(Arc::new(FailPoints::default())))?;
///
/// fail::cfg("storage_pipeline::ProposalRefused", "1*return")?;
/// assert_eq!(storage.raw_put(b"key", b"value"), Outcome::NotExecuted(Error::SchedTooBusy));
/// assert!(storage.raw_put(b"key", b"value").is_applied());
/// scenario.teardown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct FailPoints {
    next: Option<Arc<dyn Observe>>,
}

impl FailPoints {
    /// Asks `fail` first, and tells and asks another observer afterwards.
    #[must_use]
    pub fn before(next: Arc<dyn Observe>) -> Self {
        Self { next: Some(next) }
    }
}

impl Observe for FailPoints {
    fn moment(&self, moment: Moment) {
        fail_point!(moment.path());
        if let Some(next) = &self.next {
            next.moment(moment);
        }
    }

    fn fails(&self, point: FailPoint) -> bool {
        fail_point!(point.path(), |_| true);
        self.next.as_ref().is_some_and(|next| next.fails(point))
    }
}

impl fmt::Debug for FailPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailPoints").field("has_next", &self.next.is_some()).finish()
    }
}
