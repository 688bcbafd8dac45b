//! What a node lets in and what it refuses, spoken to as another node speaks, and as nobody should.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use raft::eraftpb::{Entry, MessageType};
use tokio::{runtime::Runtime, sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming, transport::Channel};

use super::{
    Node, NodeConfig, NodeError, PROTOCOL_VERSION,
    wire::{Frame, Hello, RaftClient, RegionMessage, SnapshotChunk, Taken, encode_raft},
};
use crate::{protocol::dial::Dial, raftstore::transport::Message};

const HELLO: Hello = Hello { protocol_version: PROTOCOL_VERSION, cluster_id: 7, from: 2, to: 1 };

/// A node that knows a peer, which is never there, and needs no votes but its own.
fn node(dir: &tempfile::TempDir) -> Node {
    let mut config = NodeConfig {
        cluster_id: 7,
        listen: "127.0.0.1:0".to_owned(),
        // Nobody listens there; where somebody does, a link that is refused does no harm either.
        peers: [(2, "127.0.0.1:1".to_owned())].into(),
        max_command_bytes: 1 << 10,
        max_message_bytes: 128 << 10,
        ..NodeConfig::default()
    };
    config.store.max_apply_bytes = 32 << 10;
    config.store.max_value_bytes = 8 << 10;
    config.store.max_entry_bytes = 48 << 10;
    config.store.voters = vec![1];
    config.store.replica_id = 1;
    config.store.dir = dir.path().into();
    config.store.tick = Duration::from_millis(5);
    Node::start(config).unwrap()
}

/// A machine that has other things to do is slow, not wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether it still does what it is there for.
fn serves(node: &Node) {
    let started = Instant::now();
    while !node.storage().raw_put(b"k", b"v").is_applied() {
        assert!(started.elapsed() < PATIENCE, "the node does not serve");
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn client(node: &Node) -> RaftClient<Channel> {
    let dial = Dial::new(&node.address().to_string(), None).unwrap();
    RaftClient::new(dial.connect().await.unwrap())
}

/// What becomes of a connection whose first frame says this.
async fn greet(node: &Node, hello: Option<Hello>) -> Result<(mpsc::Sender<Frame>, Streaming<Taken>), Status> {
    let (frames, outgoing) = mpsc::channel(4);
    frames.try_send(Frame { hello, messages: Vec::new() }).unwrap();
    let answer = client(node).await.messages(ReceiverStream::new(outgoing)).await?;
    Ok((frames, answer.into_inner()))
}

fn about(region: u64, message: Vec<u8>) -> RegionMessage {
    RegionMessage { region, message: message.into() }
}

/// Why a connection ends on which these bytes are sent as a message.
async fn refusal(node: &Node, message: RegionMessage) -> Status {
    let (frames, mut answers) = greet(node, Some(HELLO)).await.unwrap();
    frames.send(Frame { hello: None, messages: vec![message] }).await.unwrap();
    let answer = timeout(PATIENCE, answers.message()).await.expect("the connection ends");
    answer.expect_err("with a reason")
}

fn message(kind: MessageType) -> Message {
    let mut message = Message { from: 2, to: 1, term: 1, ..Message::default() };
    message.set_msg_type(kind);
    message
}

#[test]
fn whoever_is_no_peer_of_this_cluster_is_refused_with_a_reason_and_the_node_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(&dir);
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        for (hello, why) in [
            (None, "does not say who"),
            (Some(Hello { protocol_version: 99, ..HELLO }), "protocol version 99"),
            (Some(Hello { cluster_id: 8, ..HELLO }), "this is cluster 7, not 8"),
            (Some(Hello { to: 3, ..HELLO }), "this is node 1, not 3"),
            (Some(Hello { from: 3, ..HELLO }), "no peer with id 3"),
        ] {
            let status = greet(&node, hello).await.unwrap_err();
            assert_eq!(status.code(), Code::FailedPrecondition);
            assert!(status.message().contains(why), "{status}");
            let chunk = SnapshotChunk { hello, ..SnapshotChunk::default() };
            let status = client(&node).await.chunk(chunk).await.unwrap_err();
            assert!(status.message().contains(why), "{status}");
        }
        assert!(greet(&node, Some(HELLO)).await.is_ok());
    });
    serves(&node);
    node.stop();
}

#[test]
fn a_message_that_is_malformed_oversized_or_not_for_peers_ends_its_connection_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(&dir);
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let (healthy, mut answers) = greet(&node, Some(HELLO)).await.unwrap();
        let encode = |message: &Message| encode_raft(message).unwrap();
        let mut large = message(MessageType::MsgAppend);
        large.entries.push(Entry { data: vec![0; 256 << 10], ..Entry::default() });
        let other = Message { from: 3, ..message(MessageType::MsgHeartbeat) };
        let elsewhere = Message { to: 4, ..message(MessageType::MsgHeartbeat) };
        let vote = encode(&message(MessageType::MsgRequestVoteResponse));
        for (bytes, code, why) in [
            (vec![0xff; 9], Code::InvalidArgument, "cannot be decoded"),
            (encode(&large), Code::OutOfRange, "large"),
            (encode(&other), Code::InvalidArgument, "node 2 sends a message of node 3"),
            (encode(&elsewhere), Code::InvalidArgument, "for replica 4"),
            (
                encode(&Message { term: 0, ..message(MessageType::MsgHeartbeat) }),
                Code::InvalidArgument,
                "in which term",
            ),
            (encode(&message(MessageType::MsgPropose)), Code::InvalidArgument, "MsgPropose"),
        ] {
            let status = refusal(&node, about(1, bytes)).await;
            assert_eq!(status.code(), code, "{status}");
            assert!(status.message().contains(why), "{status}");
        }
        for region in [0, 2, u64::MAX] {
            let status = refusal(&node, about(region, vote.clone())).await;
            assert!(status.message().contains(&format!("no region {region}")), "{status}");
        }
        // What is welcome, on the connection that was there all the time.
        healthy.send(Frame { hello: None, messages: vec![about(1, vote)] }).await.unwrap();
        assert!(timeout(Duration::from_millis(50), answers.message()).await.is_err(), "it stays open");
    });
    serves(&node);
    node.stop();
}

#[test]
fn bytes_that_are_no_protocol_at_all_do_the_node_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(&dir);
    for bytes in [&b"\0\0\0\0"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff", &[0xff; 4096]] {
        let mut stream = TcpStream::connect(node.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // The node may hang up while this still writes.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    serves(&node);
    node.stop();
}

#[test]
fn a_node_that_cannot_start_says_why_and_leaves_nothing_running() {
    let dir = tempfile::tempdir().unwrap();
    let first = node(&dir);
    let listen = first.address().to_string();
    let mut config = NodeConfig { cluster_id: 7, listen, ..NodeConfig::default() };
    config.store.replica_id = 1;
    config.store.dir = dir.path().into();
    assert!(matches!(Node::start(config.clone()), Err(NodeError::Listen { .. })));
    config.listen = "127.0.0.1:0".to_owned();
    assert!(matches!(Node::start(config.clone()), Err(NodeError::Open(_))), "the directory is in use");
    config.cluster_id = 0;
    assert!(matches!(Node::start(config), Err(NodeError::Config(_))));
    serves(&first);
    first.stop();
}
