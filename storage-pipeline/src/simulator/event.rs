//! What happens inside a replica while one of its rooms has its turn, in order. The rooms tell it through the seams that
//! any user has: transport, observer, callbacks.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;

use crate::{
    error::Outcome,
    members::Members,
    observe::{Moment, Observe},
    raftstore::{
        snapshot::SnapshotChunk,
        transport::{Message, MessageRefused, Transport},
    },
    scheduler::task::Reply,
};

/// Something that happened.
pub(super) enum Event {
    /// Raft sent a message about a region.
    Sent(u64, Message),
    /// A part of a snapshot was sent.
    SentChunk(SnapshotChunk),
    /// The replica reached a moment.
    Moment(Moment),
    /// A caller was told.
    Told { operation: u64, reply: Reply },
    /// Whoever wished for a change of a region's members was told.
    MembersTold(u64, Outcome<Members>),
}

/// Where one life of a replica puts its events.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Vec<Event>>>, Arc<AtomicBool>);

impl Events {
    pub(super) fn push(&self, event: Event) {
        self.0.lock().push(event);
    }

    /// Whether others take chunks of snapshots, or refuse them so that the sender hears of it.
    pub(super) fn refuse_chunks(&self, refuse: bool) {
        // ORDERING: Relaxed; a simulation has one thread.
        self.1.store(refuse, Ordering::Relaxed);
    }

    pub(super) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Transport for Events {
    fn send(&self, region: u64, messages: Vec<Message>) {
        messages.into_iter().for_each(|message| self.push(Event::Sent(region, message)));
    }

    fn send_chunk(&self, chunk: SnapshotChunk) -> Result<(), MessageRefused> {
        // ORDERING: Relaxed, as where it is set.
        if self.1.load(Ordering::Relaxed) {
            return Err(MessageRefused::Unreachable);
        }
        self.push(Event::SentChunk(chunk));
        Ok(())
    }
}

impl Observe for Events {
    fn moment(&self, moment: Moment) {
        self.push(Event::Moment(moment));
    }
}
