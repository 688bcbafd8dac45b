//! Who is measured, each with its servers running from the first round to the last.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use benches::round::Failure;
use clap::ValueEnum;

use crate::{
    clients::{self, Client},
    load::{self, Round},
    servers::{self, Servers},
};

/// What is said where etcd is not there.
pub(crate) const HOW_TO_GET_ETCD: &str = "not installed: apt-get install etcd-server";

/// Which store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The pipeline's protocol over a map in memory, one node.
    Ceiling,
    /// As the ceiling, over a stream of each client.
    CeilingStream,
    /// Nodes of the pipeline, with a call for each put.
    Pipeline,
    /// Nodes of the pipeline, over a stream of each client.
    PipelineStream,
    /// Nodes of etcd.
    Etcd,
}

/// A store that runs.
pub(crate) struct Contender {
    pub(crate) kind: Kind,
    /// What its rows are called.
    pub(crate) name: String,
    servers: Servers,
    /// The number of the next key.
    next: Arc<AtomicU64>,
}

impl Contender {
    /// Starts its servers. `None` where it is not installed. One of several builds of the pipeline goes by its path too.
    pub(crate) async fn start(
        kind: Kind,
        nodes: u64,
        server: &Path,
        dir: &Path,
        is_one_of_several: bool,
    ) -> Result<Option<Self>, Failure> {
        let servers = match kind {
            Kind::Ceiling | Kind::CeilingStream => servers::ceiling(dir)?,
            Kind::Pipeline | Kind::PipelineStream => servers::pipeline(server, nodes, dir)?,
            Kind::Etcd if servers::etcd_version().is_none() => return Ok(None),
            Kind::Etcd => servers::etcd(nodes, dir)?,
        };
        let path = if is_one_of_several { format!(", {}", server.display()) } else { String::new() };
        let contender = Self { kind, name: format!("{kind}{path}"), servers, next: Arc::default() };
        // It is there when it takes a put.
        contender.client().await?.put(b"first".to_vec(), Vec::new()).await?;
        Ok(Some(contender))
    }

    /// A client of the node that leads.
    async fn client(&self) -> Result<Client, Failure> {
        let addresses = &self.servers.addresses;
        match self.kind {
            Kind::Ceiling => clients::store(&addresses[0]).await,
            Kind::CeilingStream => clients::stream(&addresses[0]).await,
            Kind::Pipeline => clients::store(&clients::store_leader(addresses).await?).await,
            Kind::PipelineStream => clients::stream(&clients::store_leader(addresses).await?).await,
            Kind::Etcd => clients::etcd(&clients::etcd_leader(addresses).await?).await,
        }
    }

    /// A timed round of new clients.
    pub(crate) async fn round(&self, clients: u64, length: Duration, value: usize) -> Result<Round, Failure> {
        let mut connected = Vec::new();
        for _ in 0..clients {
            connected.push(self.client().await?);
        }
        let next = Arc::clone(&self.next);
        // ORDERING: Relaxed: only the numbers matter.
        let key = move || next.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec();
        load::rate(connected, length, key, value, || self.servers.usage()).await
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ceiling => "gRPC over memory, one node (the ceiling)",
            Self::CeilingStream => "streams over memory, one node (the ceiling of streams)",
            Self::Pipeline => "the pipeline",
            Self::PipelineStream => "the pipeline, over streams",
            Self::Etcd => "etcd",
        })
    }
}
