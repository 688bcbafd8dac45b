//! Clients that put, one connection each, to the node that leads.

use std::time::{Duration, Instant};

use benches::round::Failure;
use tokio::{sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Streaming,
    transport::{Channel, Endpoint},
};

use crate::etcd::{PutRequest, StatusRequest, kv_client::KvClient, maintenance_client::MaintenanceClient};
use crate::store::{
    self, CommandsReply, CommandsRequest, RegionsRequest, Reply, commands_request::Asked, reply::Outcome,
    store_client::StoreClient,
};

/// How long a cluster may take until it has a leader.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client with its connection.
pub(crate) enum Client {
    /// A call for each put.
    Store(StoreClient<Channel>),
    /// All puts over one stream.
    Stream {
        asks: mpsc::Sender<CommandsRequest>,
        answers: Streaming<CommandsReply>,
    },
    Etcd(KvClient<Channel>),
}

impl Client {
    /// Returns when the put is acknowledged.
    pub(crate) async fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), Failure> {
        match self {
            Self::Store(client) => {
                applied(Some(client.execute(store::raw_put(key, value)).await?.into_inner()))
            }
            Self::Stream { asks, answers } => {
                let asked = Some(Asked::Execute(store::raw_put(key, value)));
                asks.send(CommandsRequest { id: 0, asked }).await?;
                applied(answers.message().await?.and_then(|answer| answer.reply))
            }
            Self::Etcd(client) => {
                client.put(PutRequest { key, value }).await?;
                Ok(())
            }
        }
    }
}

fn applied(reply: Option<Reply>) -> Result<(), Failure> {
    match reply.and_then(|reply| reply.outcome) {
        Some(Outcome::Applied(_)) => Ok(()),
        other => Err(format!("a put was not applied: {other:?}").into()),
    }
}

/// A client of the pipeline's protocol, with a call for each put.
pub(crate) async fn store(address: &str) -> Result<Client, Failure> {
    Ok(Client::Store(StoreClient::new(patiently(async || connect(address).await).await?)))
}

/// A client of the pipeline's protocol that puts over a stream.
pub(crate) async fn stream(address: &str) -> Result<Client, Failure> {
    let mut client = StoreClient::new(patiently(async || connect(address).await).await?);
    let (asks, asked) = mpsc::channel(1);
    let answers = client.commands(ReceiverStream::new(asked)).await?.into_inner();
    Ok(Client::Stream { asks, answers })
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
