//! The network between replicas: loses, doubles, delays and reorders what raft sends, and can be cut in either
//! direction of each link. Hands on messages whose time has come.

use std::{collections::BTreeSet, time::Duration};

use crate::{raftstore::transport::Message, simulator::random::Random};

/// Messages on their way, and what can happen to them.
#[derive(Default)]
pub(super) struct Network {
    /// With the time of their arrival.
    pub(super) in_flight: Vec<(Duration, Message)>,
    /// Links that are cut, as sender and receiver.
    cut: BTreeSet<(u64, u64)>,
    quality: Quality,
    pub(super) lost: u64,
    pub(super) doubled: u64,
}

/// How well the network works.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quality {
    pub(super) loss_percent: u32,
    pub(super) double_percent: u32,
    pub(super) longest_delay: Duration,
}

impl Default for Quality {
    fn default() -> Self {
        Self { loss_percent: 0, double_percent: 0, longest_delay: Duration::from_micros(500) }
    }
}

impl Network {
    /// Takes a message that was sent now.
    pub(super) fn send(&mut self, message: Message, now: Duration, random: &mut Random) {
        let is_cut = self.cut.contains(&(message.from, message.to));
        if is_cut || random.percent(self.quality.loss_percent) {
            self.lost += 1;
            return;
        }
        let shortest = Duration::from_micros(50);
        if random.percent(self.quality.double_percent) {
            self.doubled += 1;
            let arrives = now + random.between(shortest, self.quality.longest_delay);
            self.in_flight.push((arrives, message.clone()));
        }
        self.in_flight.push((now + random.between(shortest, self.quality.longest_delay), message));
    }

    /// Takes out a message that has arrived.
    pub(super) fn arrived(&mut self, now: Duration) -> Option<Message> {
        let next = (0..self.in_flight.len()).min_by_key(|at| self.in_flight[*at].0)?;
        (self.in_flight[next].0 <= now).then(|| self.in_flight.swap_remove(next).1)
    }

    /// When the next message arrives.
    pub(super) fn next_arrival(&self) -> Option<Duration> {
        self.in_flight.iter().map(|(arrives, _)| *arrives).min()
    }

    /// Cuts the link from one replica to another. What is on its way arrives.
    pub(super) fn cut(&mut self, from: u64, to: u64) {
        self.cut.insert((from, to));
    }

    /// Whether any link is cut.
    pub(super) fn is_cut(&self) -> bool {
        !self.cut.is_empty()
    }

    /// Mends every link.
    pub(super) fn heal(&mut self) {
        self.cut.clear();
    }

    pub(super) fn set_quality(&mut self, quality: Quality) {
        self.quality = quality;
    }
}
