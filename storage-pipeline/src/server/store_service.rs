//! What clients ask of a node: checked, handed to the store, and answered in every case. Hands commands
//! to the store's front door.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use prost::Message;
use tonic::Response;

use super::{NodeConfig, handshake::Identity, metrics::Metrics, phase::Watch};
use crate::{
    client::oracle::wall_clock,
    command::{self, AllocateTimestamps, Command, TimestampRange},
    error::{Error, InvalidCommand, Outcome},
    protocol::{
        Malformed, PROTOCOL_VERSION, Refusal, Reply,
        wire::{self, reply::Outcome as Of, store_server::StoreServer},
    },
    region::RegionContext,
    storage::Storage,
    txn::timestamp,
};

mod rpc;

/// What a request takes besides its command.
const REQUEST_OVERHEAD_BYTES: usize = 1 << 10;
/// How far ahead of the node's clock a client may ask for timestamps: it could use up all of them with one request else.
const TIMESTAMP_REACH_MS: u64 = 24 * 60 * 60 * 1000;

/// The service, one for all connections.
#[derive(Clone)]
pub(crate) struct StoreService {
    identity: Arc<Identity>,
    storage: Storage,
    watch: Watch,
    /// Where clients reach each node, this one included.
    addresses: Arc<BTreeMap<u64, String>>,
    default_timeout: Duration,
    max_request_bytes: usize,
    max_reply_bytes: usize,
    metrics: Option<Arc<Metrics>>,
}

impl StoreService {
    pub(crate) fn new(
        config: &NodeConfig,
        listens: SocketAddr,
        identity: &Arc<Identity>,
        storage: &Storage,
        watch: &Watch,
    ) -> Self {
        let mut addresses = config.peers.clone();
        let own = || config.advertise.clone().unwrap_or_else(|| listens.to_string());
        addresses.entry(config.node_id()).or_insert_with(own);
        Self {
            identity: Arc::clone(identity),
            storage: storage.clone(),
            watch: watch.clone(),
            addresses: addresses.into(),
            default_timeout: config.store.default_timeout,
            max_request_bytes: config.max_command_bytes.saturating_add(REQUEST_OVERHEAD_BYTES),
            max_reply_bytes: config.max_message_bytes,
            metrics: None,
        }
    }

    /// Counts from now on how requests end.
    pub(crate) fn counted(self, metrics: Option<&Arc<Metrics>>) -> Self {
        Self { metrics: metrics.cloned(), ..self }
    }

    /// The service as the server takes it, with its bound of the size of a request.
    pub(crate) fn served(self) -> StoreServer<Self> {
        let most = self.max_request_bytes;
        StoreServer::new(self).max_decoding_message_size(most)
    }

    /// How long the outcome of a request is of use to its caller.
    fn admit(&self, header: Option<wire::Header>) -> Result<Duration, Refusal> {
        let header = header.unwrap_or_default();
        if header.protocol_version != PROTOCOL_VERSION {
            return Err(Refusal::ProtocolVersion(PROTOCOL_VERSION));
        }
        if self.identity.check_cluster(header.cluster_id).is_err() {
            return Err(Refusal::Cluster(self.identity.cluster_id));
        }
        Ok(match header.timeout_ms {
            0 => self.default_timeout,
            left => Duration::from_millis(left),
        })
    }

    /// Answers a request: admitted, understood, and on a node that goes on, it is run.
    async fn asked<T, F>(
        &self,
        header: Option<wire::Header>,
        asked: Result<T, Malformed>,
        run: impl FnOnce(T, Duration) -> F,
    ) -> wire::Reply
    where
        F: Future<Output = Outcome<command::Response>>,
    {
        let asked = self.admit(header).and_then(|time| Ok((asked.map_err(Refusal::Malformed)?, time)));
        let outcome = match asked {
            Ok(_) if !self.watch.is_serving() => Ok(Outcome::NotExecuted(Error::Closed)),
            Ok((asked, time)) => Ok(run(asked, time).await),
            Err(refusal) => Err(refusal),
        };
        self.answer(outcome)
    }

    /// Runs a command. Where the client gives up meanwhile, the command goes on, and nobody waits for its outcome.
    async fn run(
        &self,
        command: Command,
        region: Option<RegionContext>,
        timeout: Duration,
    ) -> Outcome<command::Response> {
        if let Err(why) = within_reach(&command, wall_clock()) {
            return Outcome::NotExecuted(Error::InvalidCommand(why));
        }
        let (callback, reply) = callback_slot::reply();
        let answer = |outcome| callback.call(outcome);
        match region {
            Some(region) => self.storage.submit_in(region, command, timeout, answer),
            None => self.storage.submit_within(command, timeout, answer),
        }
        reply.await.expect("a callback runs exactly once, whatever becomes of its command")
    }

    async fn next_timestamp(&self, timeout: Duration) -> Outcome<command::Response> {
        let next = match self.storage.timestamp_at_hand() {
            Some(timestamp) => Outcome::Applied(timestamp),
            None => {
                let storage = self.storage.clone();
                // More of them are replicated first, for which no task of the runtime should wait.
                let next = tokio::task::spawn_blocking(move || storage.timestamp_within(timeout)).await;
                next.unwrap_or(Outcome::NotExecuted(Error::Dropped))
            }
        };
        next.map(|first| {
            command::Response::Timestamps(TimestampRange { first, limit: first.saturating_add(1) })
        })
    }

    fn answer(&self, outcome: Result<Outcome<command::Response>, Refusal>) -> wire::Reply {
        let leader_address = match &outcome {
            Ok(Outcome::NotExecuted(Error::NotLeader { leader: Some(id) })) => {
                self.addresses.get(id).cloned()
            }
            _ => None,
        };
        Reply { outcome, leader_address }.into()
    }

    /// The answer as it leaves the node.
    fn sent(&self, reply: wire::Reply) -> Response<wire::Reply> {
        if let Some(metrics) = &self.metrics {
            metrics.answered(kind_of(&reply));
        }
        Response::new(reply)
    }

    /// The answer of a read, where a client takes that much. A read has no effect, so it can still be refused.
    fn within_size(&self, reply: wire::Reply) -> wire::Reply {
        let (size, limit) = (reply.encoded_len(), self.max_reply_bytes);
        if size <= limit {
            return reply;
        }
        let why = InvalidCommand::TooLarge { field: "reply".into(), size, limit };
        self.answer(Ok(Outcome::NotExecuted(Error::InvalidCommand(why))))
    }
}

/// What became of a request, in a word.
fn kind_of(reply: &wire::Reply) -> &'static str {
    match reply.outcome {
        Some(Of::Applied(_)) => "applied",
        Some(Of::NotExecuted(_)) => "not_executed",
        Some(Of::Indeterminate(_)) => "indeterminate",
        Some(Of::Refused(_)) | None => "refused",
    }
}

/// Whether a command leaves timestamps for others: those that it reserves begin not too far ahead, and are not too many.
fn within_reach(command: &Command, now: u64) -> Result<(), InvalidCommand> {
    let Command::AllocateTimestamps(AllocateTimestamps { at_least, window }) = *command else {
        return Ok(());
    };
    let reach = timestamp::compose(TIMESTAMP_REACH_MS, 0);
    let out = |field: &'static str, value| {
        let range = "within a day of the node's clock".into();
        Err(InvalidCommand::OutOfRange { field: field.into(), value, range })
    };
    if at_least > now.saturating_add(reach) {
        return out("at_least", at_least);
    }
    if window > reach { out("window", window) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
