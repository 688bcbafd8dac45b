//! The observer of a round: how long after a batch is applied its callers are told and its latches released, who
//! allocates, and, where a round asks for it, callbacks that take their time.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use storage_pipeline::observe::{Moment, Observe};

use crate::{allocations::name_thread, figures::Spread};

/// Watches what happens after a batch is applied.
pub struct AfterApply {
    timing: AtomicBool,
    told: Mutex<Histogram<u64>>,
    released: Mutex<Histogram<u64>>,
    /// What each callback takes, on the thread that runs it.
    callback: Duration,
}

impl AfterApply {
    /// An observer that adds so much to each callback.
    #[must_use]
    pub fn new(callback: Duration) -> Self {
        let histogram = || Mutex::new(Histogram::new(3).expect("three digits are allowed"));
        Self { timing: AtomicBool::new(false), told: histogram(), released: histogram(), callback }
    }

    /// Begins or ends the timed window.
    pub fn set_timing(&self, timing: bool) {
        self.timing.store(timing, Ordering::Relaxed);
    }

    /// From the applied batch to the call of the caller's callback. Not to its return: what it wakes may run first.
    #[must_use]
    pub fn applied_to_caller(&self) -> Spread {
        Spread::of_nanos(&self.told.lock().expect("recording does not panic"))
    }

    /// From the applied batch to the released latches.
    #[must_use]
    pub fn applied_to_released(&self) -> Spread {
        Spread::of_nanos(&self.released.lock().expect("recording does not panic"))
    }

    fn record(&self, histogram: &Mutex<Histogram<u64>>, applied_at: Option<Instant>) {
        let Some(applied_at) = applied_at.filter(|_| self.timing.load(Ordering::Relaxed)) else { return };
        let nanos = u64::try_from(applied_at.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // A histogram that grows by itself records any number.
        let _ = histogram.lock().expect("recording does not panic").record(nanos);
    }
}

impl Observe for AfterApply {
    fn moment(&self, moment: Moment) {
        name_thread();
        match moment {
            Moment::TellingCaller { applied_at, .. } => {
                self.record(&self.told, applied_at);
                spin(self.callback);
            }
            Moment::Released { applied_at, .. } => self.record(&self.released, applied_at),
            _ => {}
        }
    }
}

/// Keeps the thread busy.
fn spin(time: Duration) {
    if !time.is_zero() {
        let end = Instant::now() + time;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
    }
}
