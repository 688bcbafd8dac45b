//! Transfers of coins between a few accounts, and looks at all of them at one moment: no coin appears or vanishes, and no transfer
//! that was acknowledged is lost.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use storage_pipeline::Outcome;

use super::victim::Victim;
use crate::support::wait_for;

pub(crate) const ACCOUNTS: u64 = 5;

/// Who moves coins and counts them.
pub(crate) trait Teller: Clone + Send + Sync {
    /// Moves a coin, with a record of it. Says whether that was acknowledged.
    fn transfer(&self, number: u64, from: u64, to: u64) -> bool;
    /// All coins at one moment, if that is answered. There are none at the beginning, and accounts may owe some.
    fn total(&self) -> Option<i64>;
}

impl Teller for Victim {
    fn transfer(&self, number: u64, from: u64, to: u64) -> bool {
        self.ask(&format!("transfer {number} {from} {to}")).is_applied()
    }

    fn total(&self) -> Option<i64> {
        let Outcome::Applied(total) = self.ask(&format!("total {ACCOUNTS}")) else { return None };
        Some(total.parse().unwrap())
    }
}

/// What the clients of a bank share.
pub(crate) struct Bank<T> {
    tellers: Mutex<Vec<T>>,
    stop: AtomicBool,
    next: AtomicU64,
    acknowledged: Mutex<Vec<u64>>,
    looks: AtomicU64,
}

impl<T: Teller> Bank<T> {
    pub(crate) fn with(tellers: Vec<T>) -> Self {
        Self {
            tellers: Mutex::new(tellers),
            stop: AtomicBool::default(),
            next: AtomicU64::default(),
            acknowledged: Mutex::default(),
            looks: AtomicU64::default(),
        }
    }

    /// Tells the clients whom they may ask from now on.
    pub(crate) fn follow(&self, tellers: Vec<T>) {
        *self.tellers.lock().unwrap() = tellers;
    }

    /// What ends the clients.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Waits until something was moved and looked at.
    pub(crate) fn wait_for_business(&self) {
        wait_for("business", || {
            !self.acknowledged.lock().unwrap().is_empty() && self.looks.load(Ordering::Relaxed) > 0
        });
    }

    /// One client, until it is told to stop.
    pub(crate) fn client(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let teller = {
                let tellers = self.tellers.lock().unwrap();
                tellers.get(n as usize % tellers.len().max(1)).cloned()
            };
            let Some(teller) = teller else { continue };
            if n.is_multiple_of(4) {
                if let Some(total) = teller.total() {
                    assert_eq!(total, 0, "every transfer moves what it takes");
                    self.looks.fetch_add(1, Ordering::Relaxed);
                }
            } else if teller.transfer(n, n % ACCOUNTS, (n / 7) % ACCOUNTS) {
                self.acknowledged.lock().unwrap().push(n);
            } else {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Closes it: no coin is missing, and each transfer that was acknowledged has left its record.
    pub(crate) fn close(self, total: i64, record: impl Fn(u64) -> String) {
        assert_eq!(total, 0);
        let acknowledged = self.acknowledged.into_inner().unwrap();
        for number in &acknowledged {
            assert_ne!(record(*number), "", "transfer {number} is lost");
        }
    }
}
