//! How a client gets to know a cluster: the first node that answers says which regions there are and where the nodes are. Hands
//! on connections to them, which are made when they are needed.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tonic::transport::Channel;

use super::{Client, Inner, line::Line, route::Route};
use crate::{
    error::Error,
    protocol::{
        PROTOCOL_VERSION, Refusal,
        backoff::Backoff,
        dial::Dial,
        tls::{Tls, TlsFiles},
        wire::{self, store_client::StoreClient},
    },
    region::{FIRST_REGION, Regions},
};

/// How a client finds its cluster.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Id of the cluster. Nodes of another one refuse what is asked of them.
    pub cluster_id: u64,
    /// Where nodes can be reached. One that answers is enough: it knows the others.
    pub nodes: Vec<String>,
    /// Time that a command is given where its caller names none, and that connecting is given.
    pub timeout: Duration,
    /// The files of TLS, where the nodes have it.
    pub tls: TlsFiles,
}

impl ClientConfig {
    /// A client of the cluster with this id, without TLS.
    pub fn new<A: Into<String>>(cluster_id: u64, nodes: impl IntoIterator<Item = A>) -> Self {
        let nodes = nodes.into_iter().map(Into::into).collect();
        Self { cluster_id, nodes, timeout: Duration::from_secs(10), tls: TlsFiles::default() }
    }

    /// What every request begins with, where its outcome is of use for so long.
    pub(super) fn header(&self, left: Duration) -> wire::Header {
        let timeout_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
        wire::Header { protocol_version: PROTOCOL_VERSION, cluster_id: self.cluster_id, timeout_ms }
    }
}

impl Client {
    /// Connects to a cluster: asks one node after the other until one answers, or the time is up.
    ///
    /// # Errors
    /// [`Error::Refused`] where a node of another cluster or version answers, or a file of TLS is no good;
    /// [`Error::Unreachable`] where nobody does.
    pub async fn connect(config: ClientConfig) -> Result<Self, Error> {
        let tls = config.tls.read().map_err(|why| Error::Refused(why.to_string().into()))?;
        let reply = find(&config, tls.as_ref()).await?;
        Self::of(config, tls, reply)
    }

    /// A client of the cluster that a node described.
    fn of(config: ClientConfig, tls: Option<Tls>, reply: wire::RegionsReply) -> Result<Self, Error> {
        let malformed = || Error::Refused("the node describes regions that cannot be".into());
        let splits: Vec<_> = reply.regions.iter().skip(1).map(|region| region.start_key.clone()).collect();
        let regions = Regions::split_at(&splits);
        let all = || regions.all().iter().zip(&reply.regions);
        let fits = all().all(|(own, told)| own.id == told.id && own.end_key == told.end_key);
        let ascends =
            splits.first().is_none_or(|first| !first.is_empty()) && splits.is_sorted_by(|a, b| a < b);
        if reply.regions.first().map(|region| region.id) != Some(FIRST_REGION) || !fits || !ascends {
            return Err(malformed());
        }
        let addresses: HashMap<_, _> = reply.nodes.into_iter().map(|node| (node.id, node.address)).collect();
        let leaders = reply.regions.iter().map(|region| addresses.get(&region.leader).cloned()).collect();
        let mut nodes = config.nodes.clone();
        nodes.extend(addresses.into_values());
        nodes.sort();
        nodes.dedup();
        Ok(Self(Arc::new(Inner {
            config,
            tls,
            regions,
            max_request_bytes: usize::try_from(reply.max_request_bytes).unwrap_or(usize::MAX),
            route: Mutex::new(Route::new(nodes, leaders)),
            lines: Mutex::default(),
        })))
    }

    /// The connection to a node, made now where there is none.
    pub(super) async fn line(&self, address: &str) -> Result<Arc<Line>, Arc<str>> {
        if let Some(line) = self.0.lines.lock().get(address) {
            return Ok(Arc::clone(line));
        }
        let line = Arc::new(Line::open(address, self.0.tls.as_ref()).await?);
        self.0.lines.lock().insert(address.to_owned(), Arc::clone(&line));
        Ok(line)
    }

    /// Others that use the connection go on with it; whoever comes later makes a new one.
    pub(super) fn leave(&self, address: &str, line: &Arc<Line>) {
        let mut lines = self.0.lines.lock();
        if lines.get(address).is_some_and(|kept| Arc::ptr_eq(kept, line)) {
            lines.remove(address);
        }
    }
}

/// What the first node that answers says about its cluster.
///
/// # Errors
/// As [`Client::connect`].
pub(super) async fn find(config: &ClientConfig, tls: Option<&Tls>) -> Result<wire::RegionsReply, Error> {
    let mut last: Arc<str> = "no node is named".into();
    let found = tokio::time::timeout(config.timeout, async {
        let mut backoff = Backoff::default();
        while !config.nodes.is_empty() {
            for address in &config.nodes {
                match regions(address, tls, config).await {
                    Ok(reply) => return Ok(Some(reply)),
                    Err(Error::Unreachable(why)) => last = format!("{address}: {why}").into(),
                    Err(refused) => return Err(refused),
                }
            }
            tokio::time::sleep(backoff.pause()).await;
        }
        Ok(None)
    });
    match found.await {
        Ok(Ok(Some(reply))) => Ok(reply),
        Ok(Err(refused)) => Err(refused),
        Ok(Ok(None)) | Err(_) => Err(Error::Unreachable(last)),
    }
}

/// What a node says about its cluster.
pub(super) async fn regions(
    address: &str,
    tls: Option<&Tls>,
    config: &ClientConfig,
) -> Result<wire::RegionsReply, Error> {
    let channel = dial(address, tls).await.map_err(Error::Unreachable)?;
    let header = Some(config.header(config.timeout));
    let reply = StoreClient::new(channel).regions(wire::RegionsRequest { header }).await;
    let mut reply = reply.map_err(|status| Error::Unreachable(status.to_string().into()))?.into_inner();
    match reply.refused.take().map(Refusal::try_from) {
        None => Ok(reply),
        Some(Ok(refusal)) => Err(Error::Refused(refusal.to_string().into())),
        Some(Err(malformed)) => Err(Error::Refused(malformed.to_string().into())),
    }
}

/// Connects to a node.
pub(super) async fn dial(address: &str, tls: Option<&Tls>) -> Result<Channel, Arc<str>> {
    let dial = Dial::new(address, tls).map_err(Arc::from)?;
    dial.connect().await.map_err(|status| status.message().into())
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, time::Instant};

    use super::*;
    use crate::{command::RawPut, error::Outcome};

    #[test]
    fn a_node_that_says_nothing_takes_no_more_time_than_a_command_has_and_gets_nothing_to_execute() {
        // The operating system takes connections for it, and nobody reads what they bring.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let reply = wire::RegionsReply {
            regions: vec![wire::Region { id: FIRST_REGION, leader: 1, ..Default::default() }],
            nodes: vec![wire::Node { id: 1, address }],
            max_request_bytes: 1 << 20,
            refused: None,
        };
        let client = Client::of(ClientConfig::new(7, ["127.0.0.1:1"]), None, reply).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let began = Instant::now();
        let put = RawPut { key: b"key".to_vec(), value: b"v".to_vec() };
        let outcome = runtime.block_on(client.execute_within(put, Duration::from_millis(100)));
        let Outcome::NotExecuted(Error::Unreachable(why)) = outcome else {
            panic!("nobody had it: {outcome:?}")
        };
        assert_eq!(&*why, "no connection was made in time");
        // Left to itself, the connection is given up after five seconds.
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }
}
