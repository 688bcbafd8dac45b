//! Clients that put, one connection each, to the node that leads.

use std::time::{Duration, Instant};

use benches::round::Failure;
use tokio::time::sleep;
use tonic::transport::{Channel, Endpoint};

use crate::etcd::{PutRequest, StatusRequest, kv_client::KvClient, maintenance_client::MaintenanceClient};
use crate::store::{self, RegionsRequest, reply::Outcome, store_client::StoreClient};

/// How long a cluster may take until it has a leader.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client with its connection.
pub(crate) enum Client {
    Store(StoreClient<Channel>),
    Etcd(KvClient<Channel>),
}

impl Client {
    /// Returns when the put is acknowledged.
    pub(crate) async fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), Failure> {
        match self {
            Self::Store(client) => {
                let reply = client.execute(store::raw_put(key, value)).await?.into_inner();
                match reply.outcome {
                    Some(Outcome::Applied(_)) => Ok(()),
                    other => Err(format!("a put was not applied: {other:?}").into()),
                }
            }
            Self::Etcd(client) => {
                client.put(PutRequest { key, value }).await?;
                Ok(())
            }
        }
    }
}

/// A client of the pipeline's protocol.
pub(crate) async fn store(address: &str) -> Result<Client, Failure> {
    Ok(Client::Store(StoreClient::new(patiently(async || connect(address).await).await?)))
}

/// A client of etcd.
pub(crate) async fn etcd(address: &str) -> Result<Client, Failure> {
    Ok(Client::Etcd(KvClient::new(patiently(async || connect(address).await).await?)))
}

async fn connect(address: &str) -> Result<Channel, Failure> {
    Ok(Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true).connect().await?)
}

/// The address of the node of the pipeline that leads.
pub(crate) async fn store_leader(addresses: &[String]) -> Result<String, Failure> {
    patiently(async || {
        for address in addresses {
            let mut client = StoreClient::new(connect(address).await?);
            let reply = client.regions(RegionsRequest { header: store::header() }).await?.into_inner();
            let leader = reply.regions.first().map_or(0, |region| region.leader);
            if let Some(node) = reply.nodes.iter().find(|node| node.id == leader) {
                return Ok(node.address.clone());
            }
        }
        Err("no node of the pipeline leads".into())
    })
    .await
}

/// The address of the node of etcd that leads.
pub(crate) async fn etcd_leader(addresses: &[String]) -> Result<String, Failure> {
    patiently(async || {
        for address in addresses {
            let mut client = MaintenanceClient::new(connect(address).await?);
            let status = client.status(StatusRequest {}).await?.into_inner();
            let own = status.header.map(|header| header.member_id);
            if status.leader != 0 && own == Some(status.leader) {
                return Ok(address.clone());
            }
        }
        Err("no node of etcd leads".into())
    })
    .await
}

/// Tries until it succeeds, for a time: servers take a moment to start and to elect.
async fn patiently<T>(attempt: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
    let started = Instant::now();
    loop {
        match attempt().await {
            Err(_) if started.elapsed() < PATIENCE => sleep(Duration::from_millis(50)).await,
            done => return done,
        }
    }
}
