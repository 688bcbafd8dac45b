//! What other nodes send this one: checked, decoded, and handed to the store. Whoever sends what nobody should is
//! refused with a reason, and the node goes on with the others.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{
    handshake::{HandshakeRefused, Identity},
    phase::Watch,
    wire::{self, Frame, Raft, RegionMessage, Taken, decode_raft},
};
use crate::{
    raftstore::{
        log_storage::Position,
        snapshot::{Sending, SnapshotChunk},
        transport::MessageRefused,
    },
    storage::Storage,
};

/// How long another node may take to say who it is.
const HANDSHAKE: Duration = Duration::from_secs(3);

/// The service, one for all connections.
#[derive(Clone)]
pub(crate) struct RaftService {
    pub(crate) identity: Arc<Identity>,
    pub(crate) storage: Storage,
    pub(crate) watch: Watch,
}

impl From<HandshakeRefused> for Status {
    fn from(why: HandshakeRefused) -> Self {
        tracing::warn!(%why, "another node is refused");
        Self::failed_precondition(why.to_string())
    }
}

impl RaftService {
    /// Takes frames until the other node ends, or sends what it must not.
    async fn take_all(&self, from: u64, frames: &mut Streaming<Frame>) -> Result<(), Status> {
        let mut watch = self.watch.clone();
        loop {
            let frame = tokio::select! {
                frame = frames.message() => frame?,
                () = watch.stopped() => return Err(Status::unavailable("this node stops")),
            };
            let Some(frame) = frame else { return Ok(()) };
            self.identity.check_peer(from)?;
            for message in &frame.messages {
                self.take(from, message)?;
            }
        }
    }

    /// Takes one message.
    fn take(&self, from: u64, of: &RegionMessage) -> Result<(), Status> {
        let refused = |why: String| Err(Status::invalid_argument(why));
        let message = match decode_raft(&of.message) {
            Ok(message) => message,
            Err(why) => return refused(format!("a message cannot be decoded: {why}")),
        };
        if message.from != from {
            return refused(format!("node {from} sends a message of node {}", message.from));
        }
        match self.storage.receive(of.region, message) {
            // What finds no room is lost, and raft sends it again.
            Ok(()) | Err(MessageRefused::Full) => Ok(()),
            Err(MessageRefused::Closed) => Err(Status::unavailable(MessageRefused::Closed.to_string())),
            Err(why) => refused(why.to_string()),
        }
    }
}

#[tonic::async_trait]
impl Raft for RaftService {
    type MessagesStream = ReceiverStream<Result<Taken, Status>>;

    async fn messages(
        &self,
        request: Request<Streaming<Frame>>,
    ) -> Result<Response<Self::MessagesStream>, Status> {
        let mut frames = request.into_inner();
        let first = timeout(HANDSHAKE, frames.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("nothing was said"))??;
        let from = self.identity.check(first.as_ref().and_then(|frame| frame.hello.as_ref()))?;
        let (end, answers) = mpsc::channel(1);
        let service = self.clone();
        tokio::spawn(async move {
            if let Err(status) = service.take_all(from, &mut frames).await {
                tracing::info!(peer = from, why = status.message(), "a connection of another node ends");
                // Where the other side is gone already, nobody needs the reason.
                let _ = end.send(Err(status)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn chunk(&self, request: Request<wire::SnapshotChunk>) -> Result<Response<Taken>, Status> {
        let wire::SnapshotChunk { hello, region, index, term, sending_term, sending_number, number, changes } =
            request.into_inner();
        let from = self.identity.check(hello.as_ref())?;
        let position = Position { index, term };
        let sending = Sending { term: sending_term, number: sending_number };
        let to = self.identity.node_id;
        let chunk = SnapshotChunk { region, from, to, position, sending, number, changes: changes.into() };
        let storage = self.storage.clone();
        // It is written to the disk, for which no task of the runtime should wait.
        let taken = tokio::task::spawn_blocking(move || storage.receive_chunk(&chunk)).await;
        match taken {
            Ok(Ok(())) => Ok(Response::new(Taken {})),
            Ok(Err(MessageRefused::Closed)) => Err(Status::unavailable(MessageRefused::Closed.to_string())),
            Ok(Err(why)) => Err(Status::failed_precondition(why.to_string())),
            Err(_) => Err(Status::internal("the chunk could not be written")),
        }
    }
}
