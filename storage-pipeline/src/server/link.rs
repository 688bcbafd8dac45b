//! A link to another node: connects, says who it is, sends what waits in its queue, and connects again after a pause that
//! grows. One task a link; it ends when the node stops, or nobody fills its queue any more.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Channel};

use super::{
    handshake::Identity,
    peer_queue::{Outgoing, PeerReceiver},
    phase::Watch,
    wire::{Frame, RaftClient, RegionMessage, Taken, encode_raft},
};
use crate::protocol::{backoff::Backoff, dial::Dial};

/// Messages that are put into one frame at most, and the bytes from which on a frame takes no further one.
const FRAME_MESSAGES: usize = 256;
const FRAME_BYTES: usize = 1 << 20;
/// Frames that wait for the connection. The rest waits in the queue, which is bounded in bytes.
const FRAMES_AHEAD: usize = 2;
/// How long the other node may take to let this one in.
const HANDSHAKE: Duration = Duration::from_secs(3);

/// What the task of a link owns.
pub(crate) struct Link {
    pub(crate) to: u64,
    pub(crate) identity: Arc<Identity>,
    pub(crate) dial: Dial,
    pub(crate) queue: PeerReceiver,
    pub(crate) most_message_bytes: usize,
    pub(crate) watch: Watch,
}

impl Link {
    /// Runs until the node stops, or the other one is no peer any more, or one at another address.
    pub(crate) async fn run(mut self) {
        let mut watch = self.watch.clone();
        let mut backoff = Backoff::default();
        let mut last_words = String::new();
        loop {
            let end = tokio::select! {
                end = self.connect_and_send(&mut backoff) => end,
                () = watch.stopped() => return,
            };
            if self.queue.is_left() {
                return;
            }
            let words = end.message().to_owned();
            // A node that is down is down for many attempts; once is enough to say so.
            if words == last_words {
                tracing::debug!(peer = self.to, why = words, "still no connection to another node");
            } else {
                tracing::info!(peer = self.to, why = words, "no connection to another node");
                last_words = words;
            }
            self.queue.clear();
            tokio::select! {
                () = sleep(backoff.pause()) => {}
                () = watch.stopped() => return,
            }
        }
    }

    /// Sends until that fails, and says how.
    async fn connect_and_send(&mut self, backoff: &mut Backoff) -> Status {
        match self.connect().await {
            Ok((frames, mut answers)) => {
                tracing::info!(peer = self.to, "connected to another node");
                backoff.reset();
                let ended = tokio::select! {
                    answer = answers.message() => answer,
                    () = self.send(&frames) => Ok(None),
                };
                ended.err().unwrap_or_else(|| Status::unavailable("the other node ended the connection"))
            }
            Err(status) => status,
        }
    }

    /// A stream that the other node has accepted.
    async fn connect(&self) -> Result<(mpsc::Sender<Frame>, Streaming<Taken>), Status> {
        let channel: Channel = self.dial.connect().await?;
        let mut client = RaftClient::new(channel).max_encoding_message_size(usize::MAX);
        let (frames, outgoing) = mpsc::channel(FRAMES_AHEAD);
        let hello = Frame { hello: Some(self.identity.hello(self.to)), messages: Vec::new() };
        frames.try_send(hello).map_err(|_| Status::internal("a new channel has room"))?;
        let answer = timeout(HANDSHAKE, client.messages(ReceiverStream::new(outgoing)));
        let answer = answer.await.map_err(|_| Status::deadline_exceeded("no answer to the handshake"))??;
        Ok((frames, answer.into_inner()))
    }

    /// Puts what waits into frames, until the connection takes no more.
    async fn send(&mut self, frames: &mpsc::Sender<Frame>) {
        let mut waiting = Vec::with_capacity(FRAME_MESSAGES);
        loop {
            self.queue.receive_many(&mut waiting, FRAME_MESSAGES).await;
            if waiting.is_empty() {
                return;
            }
            for frame in into_frames(waiting.drain(..), self.most_message_bytes) {
                if frames.send(frame).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Frames with these messages in their order. One that the other node would refuse is left out: it would cost the
/// connection, each time that raft sends it.
fn into_frames(messages: impl Iterator<Item = Outgoing>, most_bytes: usize) -> Vec<Frame> {
    let mut frames = vec![Frame::default()];
    let mut bytes = 0;
    for (region, message) in messages {
        let encoded = match encode_raft(&message) {
            Ok(encoded) if encoded.len() <= most_bytes => encoded,
            Ok(encoded) => {
                let (size, to) = (encoded.len(), message.to);
                tracing::error!(size, most_bytes, to, "a message of raft is larger than max_message_bytes");
                continue;
            }
            Err(error) => {
                tracing::error!(%error, "a message of raft cannot be encoded");
                continue;
            }
        };
        if bytes > 0 && bytes + encoded.len() > FRAME_BYTES.min(most_bytes) {
            frames.push(Frame::default());
            bytes = 0;
        }
        bytes += encoded.len();
        if let Some(frame) = frames.last_mut() {
            frame.messages.push(RegionMessage { region, message: encoded.into() });
        }
    }
    frames.retain(|frame| !frame.messages.is_empty());
    frames
}

#[cfg(test)]
mod tests {
    use raft::eraftpb::Entry;

    use super::*;
    use crate::{
        raftstore::transport::Message,
        server::wire::{FRAME_OVERHEAD_BYTES, decode_raft},
    };

    fn message(index: u64, bytes: usize) -> Outgoing {
        let mut message = Message { index, ..Message::default() };
        message.entries.push(Entry { data: vec![0; bytes], ..Entry::default() });
        (index + 7, message)
    }

    #[test]
    fn frames_keep_the_order_hold_about_a_megabyte_and_leave_out_what_would_be_refused() {
        let sizes = [10, 10, FRAME_BYTES, 10, 3 * FRAME_BYTES, 10];
        let messages = sizes.iter().zip(0..).map(|(bytes, index)| message(index, *bytes));
        let frames = into_frames(messages, 2 * FRAME_BYTES);
        let indexes: Vec<Vec<u64>> = frames
            .iter()
            .map(|frame| {
                let index = |of: &RegionMessage| {
                    let index = decode_raft(&of.message).unwrap().index;
                    assert_eq!(of.region, index + 7, "each with its region");
                    index
                };
                frame.messages.iter().map(index).collect()
            })
            .collect();
        assert_eq!(indexes, [vec![0, 1], vec![2], vec![3, 5]]);
    }

    #[test]
    fn no_frame_is_larger_than_what_the_other_node_takes() {
        const MOST: usize = 4 << 10;
        let messages = (0..FRAME_MESSAGES as u64).map(|index| message(index, 40 * (index as usize % 100)));
        let frames = into_frames(messages, MOST);
        assert!(frames.len() > 1);
        for frame in frames {
            let size = prost::Message::encoded_len(&frame);
            assert!(size <= MOST + FRAME_OVERHEAD_BYTES, "{size}");
        }
    }
}
