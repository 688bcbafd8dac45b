//! A node: one replica of a store, its links to the others, and the services that it offers on one port.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, runtime, task::JoinHandle, time::timeout};
use tonic::transport::{Server, server::TcpIncoming};

use super::{
    config::{NodeConfig, NodeConfigError},
    error::NodeError,
    handshake::Identity,
    metrics::Metrics,
    phase::{self, Lever, Phase},
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
    raftstore::status::Role,
    spans::Spans,
    storage::{Parts, Storage, identity::identify_node},
};

/// How long a leader that stops waits for another one to take over.
const HAND_OVER: Duration = Duration::from_secs(1);
/// How long connections may take to end, and tasks after them.
const HANG_UP: Duration = Duration::from_secs(2);

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
        let identity = Arc::new(Identity {
            cluster_id: config.cluster_id,
            node_id: config.node_id(),
            peers: config.other_nodes().map(|(id, _)| id).collect(),
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
        let store = StoreService::new(&config, address, &identity, &storage, &watch);
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

    /// Stops the node: it takes no new commands, lets what is in flight end for at most
    /// [`NodeConfig::drain_timeout`], gives the leadership up if it has it, closes the store and ends its connections.
    pub fn stop(mut self) {
        let in_flight = self.storage.in_flight().commands;
        tracing::info!(in_flight, "the node takes nothing new and ends what it has");
        self.lever.enter(Phase::Draining);
        wait_until(self.drain_timeout, || self.storage.in_flight().commands == 0);
        self.hand_over();
        self.end();
    }

    /// Asks the others to take over what this node leads, one after the other: one of them may be down.
    fn hand_over(&self) {
        let own = self.storage.status().replica;
        let led = || self.storage.regions().filter(|region| region.status().role == Role::Leader);
        let voters = led().filter_map(|region| region.members().ok()).flat_map(|members| members.voters);
        let others: BTreeSet<_> = voters.filter(|voter| *voter != own).collect();
        for other in others {
            led().for_each(|region| region.transfer_leader(other));
            wait_until(HAND_OVER, || led().next().is_none());
        }
    }

    /// Closes the store, which answers everybody, and then lets the connections bring the answers home.
    fn end(&mut self) {
        self.lever.enter(Phase::Draining);
        self.storage.close();
        self.lever.enter(Phase::Stopped);
        let Some(runtime) = self.runtime.take() else { return };
        tracing::info!("the store is closed, and the node ends");
        if let Some(server) = self.server.take()
            && let Ok(Ok(Err(error))) = runtime.block_on(async { timeout(HANG_UP, server).await })
        {
            tracing::error!(%error, "the server had failed");
        }
        runtime.shutdown_timeout(HANG_UP);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
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

/// Waits until something holds, at most so long.
fn wait_until(most: Duration, holds: impl Fn() -> bool) {
    let until = Instant::now() + most;
    while !holds() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
}
