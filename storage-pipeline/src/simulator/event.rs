//! What happens inside a replica while one of its rooms has its turn, in order. The rooms tell it through the seams that
//! any user has: transport, observer, callbacks.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    observe::{Moment, Observe},
    raftstore::transport::{Message, Transport},
    scheduler::task::Reply,
};

/// Something that happened.
pub(super) enum Event {
    /// Raft sent a message.
    Sent(Message),
    /// The replica reached a moment.
    Moment(Moment),
    /// A caller was told.
    Told { operation: u64, reply: Reply },
}

/// Where one life of a replica puts its events.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    pub(super) fn push(&self, event: Event) {
        self.0.lock().push(event);
    }

    pub(super) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Transport for Events {
    fn send(&self, messages: Vec<Message>) {
        messages.into_iter().for_each(|message| self.push(Event::Sent(message)));
    }
}

impl Observe for Events {
    fn moment(&self, moment: Moment) {
        self.push(Event::Moment(moment));
    }
}
