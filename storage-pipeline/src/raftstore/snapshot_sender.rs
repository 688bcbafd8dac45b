//! The thread that sends snapshots, one after the other, so that neither the raftstore nor apply waits for a slow link.
//! It ends when its mailbox is closed.

use std::{cell::Cell, sync::Arc};

use crate::{
    error::Error,
    mailbox::Mailbox,
    observe::Moment,
    raftstore::{
        log_storage::Position,
        snapshot::{OutgoingSnapshot, Sending, SnapshotChunk, encode_sent},
        transport::Transport,
    },
    scheduler::Scheduler,
};

/// What the thread owns and holds.
pub(crate) struct SnapshotSender {
    pub(crate) mailbox: Mailbox<OutgoingSnapshot>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) scheduler: Arc<Scheduler>,
    /// How many it has begun to send.
    pub(crate) begun: Cell<u64>,
}

impl SnapshotSender {
    /// Runs until the mailbox is closed.
    pub(crate) fn run(self) {
        while let Some(snapshot) = self.mailbox.receive() {
            self.turn(snapshot);
        }
    }

    /// Sends one snapshot and reports how that went.
    pub(crate) fn turn(&self, snapshot: OutgoingSnapshot) {
        let (region, to) = (snapshot.region, snapshot.message.to);
        let sent = self.send(snapshot).unwrap_or_else(|error| {
            tracing::error!(%error, to, "a snapshot could not be read");
            false
        });
        self.scheduler.reader.of(region).router.snapshot_sent(to, sent);
    }

    /// Sends all chunks and then the message. Says whether the other replica took them all.
    fn send(&self, snapshot: OutgoingSnapshot) -> Result<bool, Error> {
        let OutgoingSnapshot { region, mut message, mut chunks } = snapshot;
        let (from, to) = (message.from, message.to);
        let metadata = message.get_snapshot().get_metadata();
        let position = Position { index: metadata.index, term: metadata.term };
        self.begun.set(self.begun.get() + 1);
        let sending = Sending { term: message.term, number: self.begun.get() };
        self.scheduler.observer.note(Moment::SnapshotSending { region, to, index: position.index });
        tracing::info!(region, to, index = position.index, "a snapshot is sent");
        let mut count = 0;
        while let Some((number, changes)) = chunks.next()? {
            if self.scheduler.is_closing() {
                return Ok(false);
            }
            let chunk = SnapshotChunk { region, from, to, position, sending, number, changes };
            if let Err(error) = self.transport.send_chunk(chunk) {
                tracing::info!(%error, to, "a snapshot was not taken");
                return Ok(false);
            }
            count = number + 1;
        }
        message.mut_snapshot().data = encode_sent(sending, count);
        self.transport.send(region, vec![message]);
        tracing::info!(region, to, chunks = count, "a snapshot was sent");
        Ok(true)
    }
}
