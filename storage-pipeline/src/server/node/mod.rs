//! A node: one replica of a store, its links to the others, and the services that it offers on one port.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{net::TcpListener, runtime, task::JoinHandle};
use tonic::transport::{Server, server::TcpIncoming};

mod stop;

use super::{
    config::{NodeConfig, NodeConfigError},
    error::NodeError,
    handshake::Identity,
    metrics::Metrics,
    peers::Peers,
    phase::{self, Lever},
    raft_service::RaftService,
    status::{self, StatusService},
    store_service::StoreService,
    transport::{GrpcTransport, LinkStatus},
    wire::{FRAME_OVERHEAD_BYTES, RaftServer},
};
use crate::{
    error::NodeIdentity,
    observe::Observe,
    protocol::{
        dial::{CONNECTION_WINDOW, KEEP_ALIVE, KEEP_ALIVE_TIMEOUT, STREAM_WINDOW, causes},
        tls::Tls,
    },
    spans::Spans,
    storage::{Parts, Storage, identity::identify_node},
};

/// A node that runs. Dropping it ends it without waiting for what is in flight; [`stop`](Self::stop) waits.
///
/// ```
/// use std::time::{Duration, Instant};
/// use storage_pipeline::{raftstore::status::Role, server::{Node, NodeConfig}};
///
/// let dir = tempfile::tempdir()?;
/// let mut config = NodeConfig::default();
/// config.cluster_id = 1;
/// config.listen = "127.0.0.1:0".to_owned();
/// config.store.replica_id = 1;
/// config.store.dir = dir.path().into();
/// config.store.tick = Duration::from_millis(10);
/// let node = Node::start(config)?;
///
/// // Alone in its cluster, it elects itself.
/// let started = Instant::now();
/// while node.storage().status().role != Role::Leader && started.elapsed() < Duration::from_secs(10) {
///     std::thread::sleep(Duration::from_millis(5));
/// }
/// while !node.storage().raw_put(b"key", b"value").is_applied() {}
/// node.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Node {
    address: SocketAddr,
    status_address: Option<SocketAddr>,
    storage: Storage,
    transport: Arc<GrpcTransport>,
    lever: Lever,
    server: Option<JoinHandle<Result<(), tonic::transport::Error>>>,
    drain_timeout: Duration,
    /// Last, so that it outlives what runs on it.
    runtime: Option<runtime::Runtime>,
}

impl Node {
    /// Starts a node. It returns once the node serves; whether it leads, and when, is decided with the others.
    ///
    /// # Errors
    /// What is wrong with the configuration, the address or the data directory.
    pub fn start(config: NodeConfig) -> Result<Self, NodeError> {
        Self::start_with(config, None)
    }

    /// Starts a node whose store tells an observer of what happens in it: for tests and metrics.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(mut config: NodeConfig, observer: Option<Arc<dyn Observe>>) -> Result<Self, NodeError> {
        config.validate().map_err(NodeError::Config)?;
        let mut builder = runtime::Builder::new_multi_thread();
        let builder = builder.worker_threads(config.server_threads).thread_name("server").enable_all();
        let runtime = builder.build().map_err(NodeError::Threads)?;
        let refused = |source| NodeError::Listen { address: config.listen.clone(), source };
        let listener = runtime.block_on(TcpListener::bind(&config.listen)).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let status = runtime.block_on(status::listen(&config))?;
        let status_address = status.as_ref().and_then(|listener| listener.local_addr().ok());
        let (lever, watch) = phase::serving();
        let own = config.advertise.clone().unwrap_or_else(|| address.to_string());
        let identity = Arc::new(Identity {
            cluster_id: config.cluster_id,
            node_id: config.node_id(),
            peers: Arc::new(Peers::new(config.node_id(), own, config.peers.clone())),
        });
        let tls = config.tls.read().map_err(|why| NodeError::Config(why.into()))?;
        let builder = server_builder(tls.as_ref()).map_err(NodeError::Config)?;
        let transport = GrpcTransport::start(&config, &identity, tls.as_ref(), runtime.handle(), &watch);
        let transport = Arc::new(transport.map_err(NodeError::Config)?);
        let parts = Parts::on_disk_with(&config.store.dir, config.store.raft_log).map_err(NodeError::Open)?;
        let wanted = NodeIdentity { cluster_id: Some(config.cluster_id), node_id: config.node_id() };
        identify_node(&parts, wanted).map_err(NodeError::Open)?;
        let (metrics, observer) = Metrics::observing(&config, Spans::wanted(observer));
        let storage = Storage::open_replica(config.store.clone(), parts, transport.clone(), observer);
        let storage = storage.map_err(NodeError::Open)?;
        let store = StoreService::new(&config, &identity, &storage, &watch);
        let store = store.counted(metrics.as_ref()).served();
        if let (Some(listener), Some(metrics)) = (status, metrics) {
            let (identity, storage) = (Arc::clone(&identity), storage.clone());
            let (transport, watch) = (Arc::clone(&transport), watch.clone());
            let status = StatusService { identity, address, storage, transport, metrics, watch };
            runtime.spawn(status.serve(listener));
        }
        let raft = RaftService { identity, storage: storage.clone(), watch: watch.clone() };
        let raft =
            RaftServer::new(raft).max_decoding_message_size(config.max_message_bytes + FRAME_OVERHEAD_BYTES);
        let mut stopped = watch;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let server = builder
            .max_concurrent_streams(Some(config.max_connection_requests))
            .add_service(raft)
            .add_service(store)
            .serve_with_incoming_shutdown(incoming, async move { stopped.stopped().await });
        let server = Some(runtime.spawn(server));
        let (cluster, node, mode) = (config.cluster_id, config.node_id(), config.store.completion_mode);
        tracing::info!(cluster, node, %address, %mode, "the node serves");
        Ok(Self {
            address,
            status_address,
            storage,
            transport,
            lever,
            server,
            drain_timeout: config.drain_timeout,
            runtime: Some(runtime),
        })
    }

    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it answers `/metrics` and `/status`, if it does.
    #[must_use]
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.status_address
    }

    /// Its replica of the store.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Its links to the others.
    pub fn links(&self) -> impl Iterator<Item = LinkStatus> {
        self.transport.links()
    }

    /// The nodes of the cluster can be reached here from now on, by id; this one may be among them. A node that is not among them
    /// is let in no more. Who belongs to which region's group is another matter ([`StoreRegion::change_members`]).
    ///
    /// [`StoreRegion::change_members`]: crate::storage::StoreRegion::change_members
    ///
    /// # Errors
    /// The address of a node is none. Then nothing has changed.
    pub fn set_peers(&self, peers: &BTreeMap<u64, String>) -> Result<(), NodeConfigError> {
        self.transport.set_peers(peers)
    }
}

/// How connections that others make are treated.
fn server_builder(tls: Option<&Tls>) -> Result<Server, NodeConfigError> {
    let builder = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT));
    match tls {
        None => Ok(builder),
        Some(tls) => {
            builder.tls_config(tls.server()).map_err(|error| NodeConfigError::Tls { what: causes(&error) })
        }
    }
}
