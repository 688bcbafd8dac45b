//! The configuration of a node: who it is, whom it knows, what it may use, and the configuration of its store. Read from a
//! file, overridden field by field, and checked before anything is opened.

mod error;
mod key;
mod field;
mod file;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

pub use error::NodeConfigError;

use crate::{
    config::{Config, ConfigError},
    protocol::tls::TlsFiles,
};

/// The configuration of a node.
///
/// ```
/// use storage_pipeline::{CompletionMode, server::NodeConfig};
/// let text = r#"
///     cluster_id = 7
///     node_id = 1
///     dir = "/var/lib/store"
///     listen = "127.0.0.1:20160"
///     completion_mode = "WorkerAll"
///     tick_ms = 20
///     [peers]
///     1 = "127.0.0.1:20160"
///     2 = "127.0.0.1:20161"
///     3 = "127.0.0.1:20162"
/// "#;
/// let mut config = NodeConfig::default();
/// config.read(text)?;
/// config.set("worker_threads", "4")?;
/// config.validate()?;
/// assert_eq!(config.store.completion_mode, CompletionMode::WorkerAll);
/// assert_eq!(config.store.voters, [1, 2, 3]);
/// # Ok::<(), storage_pipeline::server::NodeConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Id of the cluster, from 1 on. Nodes and clients that name another one are refused.
    pub cluster_id: u64,
    /// Where it listens: a host and a port, which may be 0.
    pub listen: String,
    /// Where it answers `/metrics` and `/status` over HTTP. `None`: nowhere, and nothing is measured.
    pub status_listen: Option<String>,
    /// Where others reach it, if that is not where it listens.
    pub advertise: Option<String>,
    /// Where each node of the cluster can be reached, by id. This node may be among them.
    pub peers: BTreeMap<u64, String>,
    /// What makes connections safe from those who can reach the network between nodes and clients.
    pub tls: TlsFiles,
    /// Threads of the server's own, besides those of the store.
    pub server_threads: usize,
    /// Most messages that wait for the connection to another node. What finds no room is dropped; raft sends it again.
    pub peer_queue_messages: usize,
    /// Most bytes of them.
    pub peer_queue_bytes: usize,
    /// Most requests at a time on one connection, and on each stream of commands. A client waits with the next one until another
    /// is answered.
    pub max_connection_requests: u32,
    /// Largest command of a client, in bytes.
    pub max_command_bytes: usize,
    /// Largest message of another node, in bytes. It must leave room for what becomes of the largest command.
    pub max_message_bytes: usize,
    /// How long a node that stops waits for what is in flight.
    pub drain_timeout: Duration,
    /// The store's own configuration. Its `replica_id` is the id of the node.
    pub store: Config,
}

impl Default for NodeConfig {
    /// What nobody can guess is left out, so this is not valid yet.
    fn default() -> Self {
        let mut store = Config::new(PathBuf::new());
        store.replica_id = 0;
        store.voters = Vec::new();
        Self {
            cluster_id: 0,
            listen: String::new(),
            advertise: None,
            status_listen: None,
            peers: BTreeMap::new(),
            tls: TlsFiles::default(),
            server_threads: 2,
            peer_queue_messages: 4096,
            peer_queue_bytes: 64 << 20,
            max_connection_requests: 1024,
            max_command_bytes: 16 << 20,
            max_message_bytes: 64 << 20,
            drain_timeout: Duration::from_secs(5),
            store,
        }
    }
}

impl NodeConfig {
    /// Id of the node.
    #[must_use]
    pub fn node_id(&self) -> u64 {
        self.store.replica_id
    }

    /// Where the others reach this node.
    #[must_use]
    pub fn advertised(&self) -> &str {
        self.advertise.as_deref().unwrap_or(&self.listen)
    }

    /// Fills in what follows from the rest, and checks every value.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn validate(&mut self) -> Result<(), NodeConfigError> {
        if self.store.voters.is_empty() {
            let mut voters: Vec<_> = self.peers.keys().copied().chain([self.node_id()]).collect();
            voters.sort_unstable();
            voters.dedup();
            self.store.voters = voters;
        }
        self.check().map_err(NodeConfigError::from)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let out = |field, value: &dyn ToString, range: &str| {
            Err(ConfigError { field, value: value.to_string(), range: range.to_owned() })
        };
        let is_address =
            |address: &str| address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if self.cluster_id == 0 {
            return out("cluster_id", &0, "1 or more");
        }
        if self.node_id() == 0 {
            return out("node_id", &0, "1 or more");
        }
        if self.store.dir.as_os_str().is_empty() {
            return out("dir", &"\"\"", "a directory");
        }
        if !is_address(&self.listen) {
            return out("listen", &format!("\"{}\"", self.listen), "a host and a port");
        }
        if let Err(field) = self.tls.all() {
            return out(field, &"missing", "a file beside the two others");
        }
        if let Some(address) = self.status_listen.as_deref().filter(|address| !is_address(address)) {
            return out("status_listen", &format!("\"{address}\""), "a host and a port");
        }
        let counts = [
            ("server_threads", self.server_threads, 1, 1024),
            ("peer_queue_messages", self.peer_queue_messages, 1, 1 << 24),
            ("peer_queue_bytes", self.peer_queue_bytes, 1, usize::MAX),
            ("max_connection_requests", self.max_connection_requests as usize, 2, 1 << 20),
            ("max_command_bytes", self.max_command_bytes, 1 << 10, 1 << 30),
            ("max_message_bytes", self.max_message_bytes, self.least_message_bytes(), 2 << 30),
        ];
        for (field, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                return out(field, &value, &format!("{least} to {most}"));
            }
        }
        self.store.validate()
    }

    /// What the largest message needs: the largest entry, or as many smaller ones as raft puts together, or a chunk of a snapshot,
    /// which has at least one key.
    fn least_message_bytes(&self) -> usize {
        const MARGIN: usize = 64 << 10;
        let together = usize::try_from(self.store.max_apply_bytes).unwrap_or(usize::MAX);
        self.store.max_entry_bytes.max(together).saturating_add(MARGIN)
    }
}

#[cfg(test)]
mod tests;
