//! A replica as a server: nodes that reach each other over gRPC, and what they offer. `docs/server.md` says how one is run
//! and what is promised on the wire.
//!
//! The server's tasks run on a runtime of their own. The pipeline's threads never wait for it: what they send waits in
//! bounded queues, and what arrives is left in a mailbox, as everywhere.

mod config;
mod error;
mod peers;
mod handshake;
mod wire;
mod phase;
mod peer_queue;
mod link;
mod transport;
mod raft_service;
mod metrics;
mod operations;
mod store_service;
mod bounded_listener;
mod status;
mod node;

pub use config::{NodeConfig, NodeConfigError};
pub use error::NodeError;
pub use handshake::{HandshakeRefused, PROTOCOL_VERSION};
pub use node::Node;
pub use transport::LinkStatus;

pub use crate::protocol::tls::{TlsError, TlsFiles};

#[cfg(test)]
mod tests;
