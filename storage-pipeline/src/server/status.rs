//! What a node says of itself over HTTP, on a port of its own: `/metrics` for Prometheus, `/status` for people and scripts.
//! Hands on text; changes nothing.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::State, http::header, response::IntoResponse, routing::get};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    bounded_listener::{BoundedListener, Bounds},
    config::NodeConfig,
    error::NodeError,
    handshake::Identity,
    metrics::Metrics,
    phase::Watch,
    transport::GrpcTransport,
};
use crate::{raftstore::status::Role, storage::Storage};

/// The content type of the text that Prometheus reads.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A connection is given time for one request, and ends with its answer.
const ONE_EACH: (header::HeaderName, &str) = (header::CONNECTION, "close");

/// What the answers are made of.
#[derive(Clone)]
pub(crate) struct StatusService {
    pub(crate) identity: Arc<Identity>,
    pub(crate) address: SocketAddr,
    pub(crate) storage: Storage,
    pub(crate) transport: Arc<GrpcTransport>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watch: Watch,
}

/// What is answered at a time, how much a request may hold, and how long it may take with its answer.
const BOUNDS: Bounds = Bounds { connections: 16, request_bytes: 8 << 10, time: Duration::from_secs(5) };

/// The port, where one is asked for.
///
/// # Errors
/// The operating system's refusal.
pub(crate) async fn listen(config: &NodeConfig) -> Result<Option<TcpListener>, NodeError> {
    let Some(address) = &config.status_listen else { return Ok(None) };
    let refused = |source| NodeError::Listen { address: address.clone(), source };
    TcpListener::bind(address).await.map(Some).map_err(refused)
}

impl StatusService {
    /// Answers until the node stops.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let mut watch = self.watch.clone();
        let router =
            Router::new().route("/metrics", get(metrics)).route("/status", get(status)).with_state(self);
        let listener = BoundedListener::new(listener, BOUNDS);
        let served =
            axum::serve(listener, router).with_graceful_shutdown(async move { watch.stopped().await });
        if let Err(error) = served.await {
            tracing::error!(%error, "the status is not served any more");
        }
    }

    fn status(&self) -> Value {
        let regions = self.storage.regions().map(|region| {
            let (range, status) = (region.range(), region.status());
            let role = match status.role {
                Role::Leader => "leader",
                Role::Candidate => "candidate",
                Role::Follower => "follower",
            };
            let [start_key, end_key] =
                [&range.start_key, &range.end_key].map(|key| key.escape_ascii().to_string());
            let applied_index = region.applied_index();
            json!({
                "id": range.id, "start_key": start_key, "end_key": end_key, "role": role, "term": status.term,
                "leader": status.leader, "applied_index": applied_index,
            })
        });
        let counts = self.storage.in_flight();
        let links = self.transport.links();
        let links =
            links.map(|link| json!({ "peer": link.peer, "waiting": link.waiting, "dropped": link.dropped }));
        json!({
            "cluster_id": self.identity.cluster_id,
            "node_id": self.identity.node_id,
            "address": self.address.to_string(),
            "serving": self.watch.is_serving(),
            "fault": self.storage.fault().as_deref(),
            "in_flight": {
                "commands": counts.commands, "bytes": counts.bytes, "latches_held": counts.latches_held,
                "latches_waiting": counts.latches_waiting, "queued": counts.queued,
            },
            "regions": regions.collect::<Vec<_>>(),
            "links": links.collect::<Vec<_>>(),
        })
    }
}

async fn metrics(State(service): State<StatusService>) -> impl IntoResponse {
    let text = service.metrics.text(&service.storage, service.transport.links());
    ([(header::CONTENT_TYPE, OPEN_METRICS), ONE_EACH], text)
}

async fn status(State(service): State<StatusService>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json"), ONE_EACH], service.status().to_string())
}
