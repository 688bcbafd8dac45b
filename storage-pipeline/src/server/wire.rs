//! The messages and services that `proto/` describes, as generated, and raft's own messages as bytes.

use protobuf::Message as _;

use crate::raftstore::transport::Message;

/// What a frame of the most messages takes besides them: their regions, their lengths, who sends it.
pub(crate) const FRAME_OVERHEAD_BYTES: usize = 16 << 10;

mod generated {
    #![allow(missing_docs, unreachable_pub, clippy::all, clippy::too_many_lines)]

    pub mod raft {
        tonic::include_proto!("storage_pipeline.raft.v1");
    }
}

pub(crate) use generated::raft::{
    Frame, Hello, RegionMessage, SnapshotChunk, Taken,
    raft_client::RaftClient,
    raft_server::{Raft, RaftServer},
};

/// The bytes of a message of raft.
///
/// # Errors
/// raft's own encoder refuses, which it does for no message that it made.
pub(crate) fn encode_raft(message: &Message) -> Result<Vec<u8>, String> {
    message.write_to_bytes().map_err(|error| error.to_string())
}

/// The message of raft that these bytes are.
///
/// # Errors
/// They are none.
pub(crate) fn decode_raft(bytes: &[u8]) -> Result<Message, String> {
    let mut message = Message::default();
    message.merge_from_bytes(bytes).map_err(|error| error.to_string())?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use raft::eraftpb::{Entry, MessageType};

    use super::*;

    #[test]
    fn a_message_of_raft_comes_back_from_its_bytes_and_from_no_others() {
        let mut message = Message { from: 1, to: 2, term: 3, log_term: 2, index: 9, ..Message::default() };
        message.set_msg_type(MessageType::MsgAppend);
        message.entries.push(Entry { index: 10, term: 3, data: vec![7; 300], ..Entry::default() });
        let bytes = encode_raft(&message).unwrap();
        assert_eq!(decode_raft(&bytes).unwrap(), message);
        for cut in 1..bytes.len() {
            // A prefix may be a shorter message, but never this one, and never a panic.
            assert_ne!(decode_raft(&bytes[..cut]).ok(), Some(message.clone()));
        }
        assert!(decode_raft(&[0xff; 12]).is_err());
    }
}
