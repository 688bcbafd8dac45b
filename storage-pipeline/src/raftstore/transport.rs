//! How raft's messages leave a replica and reach one. The sending side is a trait, so that a network in one process,
//! one of sockets and a simulator can take each other's place. The receiving side takes what a replica may be sent.

use std::fmt;

use super::{plausible, snapshot::SnapshotChunk};

pub use raft::eraftpb::{Message, MessageType};

/// Sends raft's messages to the other replicas, each about one region.
///
/// A message may be lost, delayed, doubled or overtaken: raft sends again what is missing. It must reach the replica
/// that it names or nobody, and it must not be changed on its way.
///
/// ```
/// use std::sync::mpsc;
/// use storage_pipeline::raftstore::transport::{Message, Transport};
///
/// struct Queue(mpsc::SyncSender<(u64, Message)>);
///
/// impl Transport for Queue {
///     fn send(&self, region: u64, messages: Vec<Message>) {
///         for message in messages {
///             // A full queue loses the message; waiting for it would stop the raftstore.
///             let _ = self.0.try_send((region, message));
///         }
///     }
/// }
///
/// let (sender, receiver) = mpsc::sync_channel(1);
/// Queue(sender).send(1, vec![Message { to: 2, ..Message::default() }, Message { to: 3, ..Message::default() }]);
/// assert_eq!(receiver.try_iter().map(|(_, message)| message.to).collect::<Vec<_>>(), [2]);
/// ```
pub trait Transport: Send + Sync + 'static {
    /// Takes messages about a region in the order in which raft sent them, each for the replica in its field `to`, which must
    /// be told the region with them. It must not block:
    /// what finds no room is dropped. The raftstore calls it, with no lock held.
    fn send(&self, region: u64, messages: Vec<Message>);

    /// Brings a chunk of a snapshot to its replica and waits until that has taken it. Called on a thread that does nothing
    /// else. The message that belongs to the snapshot follows its last chunk.
    ///
    /// # Errors
    /// Why it was not taken; the snapshot is given up then, and raft takes another one later. A transport that brings no
    /// chunks leaves a replica behind that needs them.
    fn send_chunk(&self, chunk: SnapshotChunk) -> Result<(), MessageRefused> {
        let _ = chunk;
        Err(MessageRefused::Unreachable)
    }
}

/// Why a replica does not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageRefused {
    /// It is about a region that the replica does not have.
    UnknownRegion {
        /// Id of the region that it names.
        region: u64,
    },
    /// It is for another replica.
    WrongReplica {
        /// Id of the replica that it names.
        to: u64,
    },
    /// No replica sends such a message to another one: raft would take it for a wish of its own, or for one that was
    /// passed on, and nothing is passed on here.
    NotForPeers(MessageType),
    /// It names no sender, no term, or this very replica as its sender.
    Anonymous,
    /// It contradicts itself: no replica sends such a message.
    Implausible(&'static str),
    /// As many messages wait as the raftstore takes. The sender's raft sends it again.
    Full,
    /// The replica has closed.
    Closed,
    /// The replica cannot be reached.
    Unreachable,
    /// The replica cannot keep a chunk of a snapshot now: its data engine refuses, or it installs another one.
    NotKept,
}

impl fmt::Display for MessageRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownRegion { region } => write!(f, "the replica has no region {region}"),
            Self::WrongReplica { to } => write!(f, "the message is for replica {to}"),
            Self::NotForPeers(kind) => write!(f, "replicas do not send each other a {kind:?}"),
            Self::Anonymous => f.write_str("the message does not say who sent it in which term"),
            Self::Implausible(why) => write!(f, "no replica sends such a message: {why}"),
            Self::Full => f.write_str("too many messages wait for the raftstore"),
            Self::Unreachable => f.write_str("the replica cannot be reached"),
            Self::NotKept => f.write_str("the replica cannot keep a chunk of a snapshot now"),
            Self::Closed => f.write_str("the replica is closed"),
        }
    }
}

impl std::error::Error for MessageRefused {}

/// Whether `replica` may be sent this message by another one.
///
/// Its sender need not be a member that the replica knows: one that lags behind does not know its newest members yet,
/// and has to follow and elect them all the same. Who belongs to the group at all is for the transport to know.
pub(crate) fn check(message: &Message, replica: u64) -> Result<(), MessageRefused> {
    if message.to != replica {
        return Err(MessageRefused::WrongReplica { to: message.to });
    }
    if message.from == raft::INVALID_ID || message.from == replica || message.term == 0 {
        return Err(MessageRefused::Anonymous);
    }
    let kind = message.get_msg_type();
    match kind {
        MessageType::MsgAppend
        | MessageType::MsgAppendResponse
        | MessageType::MsgRequestVote
        | MessageType::MsgRequestVoteResponse
        | MessageType::MsgRequestPreVote
        | MessageType::MsgRequestPreVoteResponse
        | MessageType::MsgSnapshot
        | MessageType::MsgHeartbeat
        | MessageType::MsgHeartbeatResponse
        | MessageType::MsgTimeoutNow => {
            plausible::contradicts_itself(message).map_or(Ok(()), |why| Err(MessageRefused::Implausible(why)))
        }
        _ => Err(MessageRefused::NotForPeers(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: MessageType) -> Message {
        let mut message = Message { from: 2, to: 1, term: 1, ..Message::default() };
        message.set_msg_type(kind);
        message
    }

    #[test]
    fn a_message_that_contradicts_itself_is_refused_with_the_reason() {
        let empty = message(MessageType::MsgSnapshot);
        let refused = check(&empty, 1).unwrap_err();
        assert_eq!(refused.to_string(), "no replica sends such a message: no snapshot");
    }

    #[test]
    fn only_what_replicas_send_each_other_is_taken() {
        let taken =
            (0..64).filter_map(MessageType::from_i32).filter(|kind| check(&message(*kind), 1).is_ok());
        let taken: Vec<_> = taken.collect();
        assert!(taken.contains(&MessageType::MsgAppend) && taken.contains(&MessageType::MsgTimeoutNow));
        for never in [
            MessageType::MsgHup,
            MessageType::MsgPropose,
            MessageType::MsgReadIndex,
            MessageType::MsgTransferLeader,
            MessageType::MsgUnreachable,
            MessageType::MsgCheckQuorum,
        ] {
            assert_eq!(check(&message(never), 1), Err(MessageRefused::NotForPeers(never)));
        }
    }

    #[test]
    fn a_message_for_another_replica_or_from_nobody_is_refused() {
        let heartbeat = message(MessageType::MsgHeartbeat);
        assert_eq!(check(&heartbeat, 3), Err(MessageRefused::WrongReplica { to: 1 }));
        for anonymous in [
            Message { from: 0, ..heartbeat.clone() },
            Message { from: 1, ..heartbeat.clone() },
            // Raft takes one without a term for its own.
            Message { term: 0, ..heartbeat },
        ] {
            assert_eq!(check(&anonymous, 1), Err(MessageRefused::Anonymous));
        }
    }
}
