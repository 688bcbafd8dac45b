//! The queue in front of a link to another node: bounded in messages and in bytes. What finds no room is dropped, so that
//! the raftstore, which fills it, never waits for a network.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use tokio::sync::mpsc;

use crate::raftstore::transport::Message;

/// A message and the region that it is about.
pub(crate) type Outgoing = (u64, Message);

/// The raftstore's end.
#[derive(Clone, Debug)]
pub(crate) struct PeerSender {
    queue: mpsc::Sender<Outgoing>,
    shared: Arc<Shared>,
    most_bytes: usize,
}

/// The link's end.
#[derive(Debug)]
pub(crate) struct PeerReceiver {
    queue: mpsc::Receiver<Outgoing>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Bytes of the messages that wait.
    bytes: AtomicUsize,
    /// Messages that were dropped.
    dropped: AtomicU64,
}

/// A queue for at most so many messages and bytes. A message that is larger than that finds room in an empty one.
pub(crate) fn peer_queue(most_messages: usize, most_bytes: usize) -> (PeerSender, PeerReceiver) {
    let (sender, receiver) = mpsc::channel(most_messages);
    let shared = Arc::new(Shared::default());
    let sender = PeerSender { queue: sender, shared: Arc::clone(&shared), most_bytes };
    (sender, PeerReceiver { queue: receiver, shared })
}

/// What a message takes of the queue: its entries are all that can be large.
fn size_bytes(message: &Message) -> usize {
    const FIXED: usize = 128;
    message.entries.iter().fold(FIXED, |sum, entry| sum + entry.data.len() + entry.context.len() + FIXED / 4)
}

impl PeerSender {
    /// Leaves a message for the link. Never blocks. Says whether there was room.
    pub(crate) fn send(&self, region: u64, message: Message) -> bool {
        let bytes = size_bytes(&message);
        // ORDERING: Relaxed; the sum bounds memory and publishes nothing. The queue itself hands the message over.
        let before = self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= self.most_bytes;
        let is_taken = fits && self.queue.try_send((region, message)).is_ok();
        if !is_taken {
            // ORDERING: Relaxed; as above, and a statistic.
            self.shared.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
        is_taken
    }

    /// How many messages were dropped, for want of room or of a connection.
    pub(crate) fn dropped(&self) -> u64 {
        // ORDERING: Relaxed; a statistic.
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }
}

impl PeerReceiver {
    /// Waits for messages and adds up to `limit` of them. Adds none only when there will never be any.
    pub(crate) async fn receive_many(&mut self, messages: &mut Vec<Outgoing>, limit: usize) {
        let start = messages.len();
        self.queue.recv_many(messages, limit).await;
        let bytes = messages[start..].iter().map(|(_, message)| size_bytes(message)).sum();
        // ORDERING: Relaxed; the sum bounds memory and publishes nothing.
        self.shared.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether nobody will send any more.
    pub(crate) fn is_left(&self) -> bool {
        self.queue.is_closed()
    }

    /// Drops what waits: after a time without a connection it is of no use to raft, which has long sent it again.
    pub(crate) fn clear(&mut self) {
        while let Ok((_, message)) = self.queue.try_recv() {
            // ORDERING: Relaxed; as above, and a statistic.
            self.shared.bytes.fetch_sub(size_bytes(&message), Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use raft::eraftpb::Entry;

    use super::*;

    fn message(bytes: usize) -> Message {
        let entry = Entry { data: vec![0; bytes], ..Entry::default() };
        Message { entries: vec![entry], ..Message::default() }
    }

    #[test]
    fn a_full_queue_drops_by_count_and_by_bytes_and_takes_a_large_message_when_it_is_empty() {
        let (sender, mut receiver) = peer_queue(2, 1000);
        assert!(sender.send(1, message(2000)));
        assert!(!sender.send(1, message(1)), "the bytes are used up");
        receiver.clear();
        assert!(sender.send(1, message(1)) && sender.send(1, message(1)));
        assert!(!sender.send(1, message(1)), "two wait already");
        assert_eq!((sender.len(), sender.dropped()), (2, 3));
    }

    #[test]
    fn what_was_received_makes_room() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (sender, mut receiver) = peer_queue(8, 1000);
        for _ in 0..100 {
            assert!(sender.send(1, message(900)));
            let mut messages = Vec::new();
            runtime.block_on(receiver.receive_many(&mut messages, 4));
            assert_eq!(messages.len(), 1);
        }
        drop(sender);
        let mut none = Vec::new();
        runtime.block_on(receiver.receive_many(&mut none, 4));
        assert!(none.is_empty());
    }
}
