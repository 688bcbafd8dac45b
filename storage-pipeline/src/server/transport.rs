//! The transport of a node: a queue and a link for each of the others. The raftstore leaves its messages in the queues and
//! goes on; the links are tasks of the server's own runtime.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{runtime::Handle, time::timeout};
use tonic::{Status, transport::Channel};

use super::{
    config::{NodeConfig, NodeConfigError},
    handshake::Identity,
    link::Link,
    peer_queue::{PeerSender, peer_queue},
    phase::Watch,
    wire::{self, RaftClient},
};
use crate::{
    protocol::{dial::Dial, tls::Tls},
    raftstore::{
        snapshot::SnapshotChunk,
        transport::{Message, MessageRefused, Transport},
    },
};

/// How long another node may take to write a chunk down.
const CHUNK: Duration = Duration::from_secs(10);

/// What a node sends to the others goes over this.
#[derive(Debug)]
pub(crate) struct GrpcTransport {
    runtime: Handle,
    identity: Arc<Identity>,
    peers: BTreeMap<u64, Peer>,
    watch: Watch,
}

/// The link to another node, as it is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// Id of the other node.
    pub peer: u64,
    /// Messages of raft that wait for the connection.
    pub waiting: usize,
    /// Messages that were dropped, for want of room or of a connection. Raft has sent again what was still of use.
    pub dropped: u64,
}

/// What is held of another node.
#[derive(Debug)]
struct Peer {
    queue: PeerSender,
    dial: Dial,
    /// The connection for chunks of snapshots, so that they do not stand in the way of raft's messages.
    chunks: Mutex<Option<Channel>>,
}

impl GrpcTransport {
    /// Starts a link to every other node. They end when the node stops.
    ///
    /// # Errors
    /// The address of another node is none, or the files of TLS hold what they must not.
    pub(crate) fn start(
        config: &NodeConfig,
        identity: &Arc<Identity>,
        tls: Option<&Tls>,
        runtime: &Handle,
        watch: &Watch,
    ) -> Result<Self, NodeConfigError> {
        let mut peers = BTreeMap::new();
        for (id, address) in config.other_nodes() {
            let dial = Dial::new(address, tls).map_err(|what| NodeConfigError::Peer { id, what })?;
            let (queue, receiver) = peer_queue(config.peer_queue_messages, config.peer_queue_bytes);
            let link = Link {
                to: id,
                identity: Arc::clone(identity),
                dial: dial.clone(),
                queue: receiver,
                most_message_bytes: config.max_message_bytes,
                watch: watch.clone(),
            };
            runtime.spawn(link.run());
            peers.insert(id, Peer { queue, dial, chunks: Mutex::default() });
        }
        Ok(Self { runtime: runtime.clone(), identity: Arc::clone(identity), peers, watch: watch.clone() })
    }

    /// The links and their queues.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkStatus> {
        self.peers.iter().map(|(id, Peer { queue, .. })| LinkStatus {
            peer: *id,
            waiting: queue.len(),
            dropped: queue.dropped(),
        })
    }

    /// Brings a chunk to its node. Each has a call of its own, which is what makes the sender wait for a slow receiver.
    async fn bring(&self, peer: &Peer, chunk: SnapshotChunk) -> Result<(), Status> {
        let open = peer.chunks.lock().take();
        let channel = match open {
            Some(channel) => channel,
            None => peer.dial.connect().await?,
        };
        let mut client = RaftClient::new(channel.clone()).max_encoding_message_size(usize::MAX);
        let chunk = wire::SnapshotChunk {
            hello: Some(self.identity.hello(chunk.to)),
            region: chunk.region,
            index: chunk.position.index,
            term: chunk.position.term,
            sending_term: chunk.sending.term,
            sending_number: chunk.sending.number,
            number: chunk.number,
            changes: chunk.changes.into(),
        };
        client.chunk(chunk).await?;
        // One that failed is not used again.
        *peer.chunks.lock() = Some(channel);
        Ok(())
    }
}

impl Transport for GrpcTransport {
    fn send(&self, region: u64, messages: Vec<Message>) {
        for message in messages {
            // For a node that is not configured there is no link; the log of the other side says who refuses whom.
            if let Some(peer) = self.peers.get(&message.to) {
                peer.queue.send(region, message);
            }
        }
    }

    fn send_chunk(&self, chunk: SnapshotChunk) -> Result<(), MessageRefused> {
        let peer = self.peers.get(&chunk.to).ok_or(MessageRefused::Unreachable)?;
        let to = chunk.to;
        let mut watch = self.watch.clone();
        let brought = self.runtime.block_on(async {
            tokio::select! {
                brought = timeout(CHUNK, self.bring(peer, chunk)) => {
                    brought.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer to a chunk")))
                }
                // The thread that waits here is joined by the close.
                () = watch.drains() => Err(Status::unavailable("this node stops")),
            }
        });
        brought.map_err(|status| {
            tracing::info!(peer = to, why = status.message(), "a chunk of a snapshot was not taken");
            match status.code() {
                tonic::Code::Unavailable | tonic::Code::DeadlineExceeded => MessageRefused::Unreachable,
                _ => MessageRefused::NotKept,
            }
        })
    }
}
