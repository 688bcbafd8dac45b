//! Mutexes around an optional boxed closure: what most projects have today. The guard is gone before the closure runs.

use super::BoxedCallback;
use crate::{
    contender::{Poll, Slot},
    work::Closure,
};

/// `parking_lot`'s mutex.
pub struct ParkingLot(parking_lot::Mutex<Option<BoxedCallback>>);

/// The standard library's mutex.
pub struct StdMutex(std::sync::Mutex<Option<BoxedCallback>>);

impl Slot for ParkingLot {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        ParkingLot(parking_lot::Mutex::new(Some(Box::new(closure))))
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        let callback = self.0.lock().take();
        callback.map(|callback| callback(value)).is_some()
    }
}

impl Poll for ParkingLot {
    #[inline(always)]
    fn is_armed(&self) -> bool {
        self.0.lock().is_some()
    }
}

impl Slot for StdMutex {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        StdMutex(std::sync::Mutex::new(Some(Box::new(closure))))
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        let callback = self.0.lock().expect("no callback runs under the lock").take();
        callback.map(|callback| callback(value)).is_some()
    }
}

impl Poll for StdMutex {
    #[inline(always)]
    fn is_armed(&self) -> bool {
        self.0.lock().expect("no callback runs under the lock").is_some()
    }
}
