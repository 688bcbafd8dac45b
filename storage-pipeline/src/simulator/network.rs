//! The network between replicas: loses, doubles, delays and reorders what raft sends, and can be cut in either
//! direction of each link. Hands on messages whose time has come.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    raftstore::{
        snapshot::SnapshotChunk,
        transport::{Message, MessageType},
    },
    simulator::random::Random,
};

/// What one replica sends to another.
#[derive(Clone)]
pub(super) enum Parcel {
    /// With the region that it is about.
    Message(u64, Box<Message>),
    Chunk(SnapshotChunk),
}

/// Messages on their way, and what can happen to them.
#[derive(Default)]
pub(super) struct Network {
    /// With the time of their arrival.
    in_flight: Vec<(Duration, Parcel)>,
    /// When the last parcel of those arrives that keep their order, by sender and receiver. Parts of a snapshot do: each is sent
    /// when the one before was taken.
    last_in_order: BTreeMap<(u64, u64), Duration>,
    /// Links that are cut, as sender and receiver.
    cut: BTreeSet<(u64, u64)>,
    quality: Quality,
    /// Everything works: what one replica sends another arrives in its order, as over a connection.
    is_calm: bool,
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
    /// Takes a message about a region that was sent now.
    pub(super) fn send(&mut self, region: u64, message: Message, now: Duration, random: &mut Random) {
        let link = (message.from, message.to);
        let is_part = message.get_msg_type() == MessageType::MsgSnapshot;
        self.send_parcel(link, Parcel::Message(region, Box::new(message)), is_part, now, random);
    }

    /// Takes a part of a snapshot that was sent now.
    pub(super) fn send_chunk(&mut self, chunk: SnapshotChunk, now: Duration, random: &mut Random) {
        self.send_parcel((chunk.from, chunk.to), Parcel::Chunk(chunk), true, now, random);
    }

    fn send_parcel(
        &mut self,
        link: (u64, u64),
        parcel: Parcel,
        is_part: bool,
        now: Duration,
        random: &mut Random,
    ) {
        let is_cut = self.cut.contains(&link);
        if is_cut || random.percent(self.quality.loss_percent) {
            self.lost += 1;
            return;
        }
        let shortest = Duration::from_micros(50);
        if random.percent(self.quality.double_percent) {
            self.doubled += 1;
            let arrives = now + random.between(shortest, self.quality.longest_delay);
            self.in_flight.push((arrives, parcel.clone()));
        }
        let mut arrives = now + random.between(shortest, self.quality.longest_delay);
        if is_part || self.is_calm {
            let before = self.last_in_order.entry(link).or_default();
            arrives = arrives.max(*before + Duration::from_nanos(1));
            *before = arrives;
        }
        self.in_flight.push((arrives, parcel));
    }

    /// Takes out what has arrived.
    pub(super) fn arrived(&mut self, now: Duration) -> Option<Parcel> {
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

    /// Mends everything.
    pub(super) fn calm(&mut self) {
        self.heal();
        self.quality = Quality::default();
        self.is_calm = true;
    }

    pub(super) fn set_quality(&mut self, quality: Quality) {
        self.quality = quality;
    }
}
