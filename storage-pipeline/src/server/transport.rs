//! The transport of a node: a queue and a link for each of the others, who may become others while it runs. The raftstore leaves
//! its messages in the queues and goes on; the links are tasks of the server's own runtime.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, RwLock};
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
    tls: Option<Tls>,
    limits: Limits,
    peers: RwLock<BTreeMap<u64, Arc<Peer>>>,
    watch: Watch,
}

/// How much a link holds and sends.
#[derive(Clone, Copy, Debug)]
struct Limits {
    queue_messages: usize,
    queue_bytes: usize,
    message_bytes: usize,
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
    address: String,
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
        let limits = Limits {
            queue_messages: config.peer_queue_messages,
            queue_bytes: config.peer_queue_bytes,
            message_bytes: config.max_message_bytes,
        };
        let transport = Self {
            runtime: runtime.clone(),
            identity: Arc::clone(identity),
            tls: tls.cloned(),
            limits,
            peers: RwLock::default(),
            watch: watch.clone(),
        };
        transport.set_peers(&config.peers)?;
        Ok(transport)
    }

    /// The other nodes are these from now on, for whoever asks the identity, too. A link to one that stays where it is is not
    /// touched; the others' end, and with them what waits there.
    ///
    /// # Errors
    /// The address of a node is none. Then nothing has changed.
    pub(crate) fn set_peers(&self, addresses: &BTreeMap<u64, String>) -> Result<(), NodeConfigError> {
        let mut peers = self.peers.write();
        let mut next = BTreeMap::new();
        let mut links = Vec::new();
        for (&id, address) in addresses.iter().filter(|(id, _)| **id != self.identity.node_id) {
            if let Some(stays) = peers.get(&id).filter(|peer| peer.address == *address) {
                next.insert(id, Arc::clone(stays));
                continue;
            }
            let dial = Dial::new(address, self.tls.as_ref());
            let dial = dial.map_err(|what| NodeConfigError::Peer { id, what })?;
            let (queue, receiver) = peer_queue(self.limits.queue_messages, self.limits.queue_bytes);
            links.push(Link {
                to: id,
                identity: Arc::clone(&self.identity),
                dial: dial.clone(),
                queue: receiver,
                most_message_bytes: self.limits.message_bytes,
                watch: self.watch.clone(),
            });
            let address = address.clone();
            next.insert(id, Arc::new(Peer { address, queue, dial, chunks: Mutex::default() }));
        }
        // Under the lock, so that whoever is dialled is let in, too.
        self.identity.peers.set(addresses.clone());
        *peers = next;
        for link in links {
            self.runtime.spawn(link.run());
        }
        Ok(())
    }

    /// The links and their queues.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkStatus> {
        let peers = self.peers.read();
        let status = |(id, peer): (&u64, &Arc<Peer>)| LinkStatus {
            peer: *id,
            waiting: peer.queue.len(),
            dropped: peer.queue.dropped(),
        };
        peers.iter().map(status).collect::<Vec<_>>().into_iter()
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
        let peers = self.peers.read();
        for message in messages {
            // For a node that is not configured there is no link; the log of the other side says who refuses whom.
            if let Some(peer) = peers.get(&message.to) {
                peer.queue.send(region, message);
            }
        }
    }

    fn send_chunk(&self, chunk: SnapshotChunk) -> Result<(), MessageRefused> {
        let peer = self.peers.read().get(&chunk.to).cloned();
        let peer = peer.ok_or(MessageRefused::Unreachable)?;
        let to = chunk.to;
        let mut watch = self.watch.clone();
        let brought = self.runtime.block_on(async {
            tokio::select! {
                brought = timeout(CHUNK, self.bring(&peer, chunk)) => {
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
