//! What clients ask of a node: checked, handed to the store, and answered in every case. Hands commands
//! to the store's front door.

use std::{sync::Arc, time::Duration};

use prost::Message;

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

mod commands;
mod rpc;

/// What a request takes besides its command.
const REQUEST_OVERHEAD_BYTES: usize = 1 << 10;
/// How far ahead of the node's clock a client may ask for timestamps: it could use up all of them with one request else.
const TIMESTAMP_REACH_MS: u64 = 24 * 60 * 60 * 1000;

/// What came of a request.
#[derive(Debug)]
struct Answer {
    outcome: Result<Outcome<command::Response>, Refusal>,
    /// Whether it had no effect, whatever it says.
    is_read: bool,
}

/// The service, one for all connections.
#[derive(Clone)]
pub(crate) struct StoreService {
    identity: Arc<Identity>,
    storage: Storage,
    watch: Watch,
    default_timeout: Duration,
    max_request_bytes: usize,
    max_reply_bytes: usize,
    max_connection_requests: usize,
    metrics: Option<Arc<Metrics>>,
}

impl StoreService {
    pub(crate) fn new(
        config: &NodeConfig,
        identity: &Arc<Identity>,
        storage: &Storage,
        watch: &Watch,
    ) -> Self {
        Self {
            identity: Arc::clone(identity),
            storage: storage.clone(),
            watch: watch.clone(),
            default_timeout: config.store.default_timeout,
            max_request_bytes: config.max_command_bytes.saturating_add(REQUEST_OVERHEAD_BYTES),
            max_reply_bytes: config.max_message_bytes,
            max_connection_requests: config.max_connection_requests as usize,
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

    /// What comes of a request: admitted, understood, and on a node that goes on, it is run.
    async fn asked<T, F>(
        &self,
        header: Option<wire::Header>,
        asked: Result<T, Malformed>,
        run: impl FnOnce(T, Duration) -> F,
    ) -> Answer
    where
        F: Future<Output = Outcome<command::Response>>,
    {
        let outcome = match self.begin(header, asked) {
            Ok((asked, time)) => Ok(run(asked, time).await),
            Err(outcome) => outcome,
        };
        Answer { outcome, is_read: false }
    }

    /// A request that can be run and the time that it has, or what comes of it otherwise.
    fn begin<T>(
        &self,
        header: Option<wire::Header>,
        asked: Result<T, Malformed>,
    ) -> Result<(T, Duration), Result<Outcome<command::Response>, Refusal>> {
        let time = self.admit(header).map_err(Err)?;
        let asked = asked.map_err(|why| Err(Refusal::Malformed(why)))?;
        if self.watch.is_serving() { Ok((asked, time)) } else { Err(Ok(Outcome::NotExecuted(Error::Closed))) }
    }

    /// Runs a command, and tells what comes of it, once. Where the client gives up meanwhile, the command goes on.
    fn submit(&self, request: wire::ExecuteRequest, tell: impl FnOnce(Answer) + Send + 'static) {
        let wire::ExecuteRequest { header, command, region } = request;
        let command = Command::try_from(command.unwrap_or_default());
        let is_read = command.as_ref().is_ok_and(Command::is_read);
        let within_reach = |(command, time)| match within_reach(&command, wall_clock()) {
            Ok(()) => Ok((command, time)),
            Err(why) => Err(Ok(Outcome::NotExecuted(Error::InvalidCommand(why)))),
        };
        match self.begin(header, command).and_then(within_reach) {
            Err(outcome) => tell(Answer { outcome, is_read }),
            Ok((command, time)) => {
                let tell = move |outcome| tell(Answer { outcome: Ok(outcome), is_read });
                match region.map(RegionContext::from) {
                    Some(region) => self.storage.submit_in(region, command, time, tell),
                    None => self.storage.submit_within(command, time, tell),
                }
            }
        }
    }

    async fn give_timestamp(&self, request: wire::TimestampRequest) -> Answer {
        self.asked(request.header, Ok(()), |(), time| self.next_timestamp(time)).await
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

    /// The answer as it leaves the node.
    fn sent(&self, answer: Answer) -> wire::Reply {
        let Answer { outcome, is_read } = answer;
        let leader_address = match &outcome {
            Ok(Outcome::NotExecuted(Error::NotLeader { leader: Some(id) })) => {
                self.identity.peers.address(*id)
            }
            _ => None,
        };
        let mut reply = wire::Reply::from(Reply { outcome, leader_address });
        let (size, limit) = (reply.encoded_len(), self.max_reply_bytes);
        if is_read && size > limit {
            // It has had no effect, so it can still be refused.
            let why = InvalidCommand::TooLarge { field: "reply".into(), size, limit };
            let outcome = Ok(Outcome::NotExecuted(Error::InvalidCommand(why)));
            reply = Reply { outcome, leader_address: None }.into();
        }
        if let Some(metrics) = &self.metrics {
            metrics.answered(kind_of(&reply));
        }
        reply
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
