//! A client of a cluster: finds the node that leads the region of a command, repeats what can be repeated, and tells its
//! caller what a store in the same process would. Hands requests to the nodes.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

mod retry;
mod route;
mod line;
mod ask;
mod connect;
mod transaction;
mod operate;

use crate::{
    client::transaction::Transaction,
    command::{Command, RawDelete, RawGet, RawPut, Request, Response},
    error::{Cause, Error, Outcome},
    protocol::{backoff::Backoff, tls::Tls},
    region::{FIRST_REGION, RegionContext, Regions},
};
use ask::Ask;
use line::Line;
use retry::{Attempt, Course, Step, Whom};
use route::Route;

pub use connect::ClientConfig;

pub use crate::protocol::tls::{TlsError, TlsFiles};

const FOREIGN: &str = "the node answered with what belongs to another command";

/// How much longer a client waits than it allows a node, whose answer may say more than silence.
const GRACE: Duration = Duration::from_millis(100);

/// A client of a cluster. Clones share its connections, of which there is one to each node, and what they ask shares a stream.
///
/// A command is answered as by [`Storage`](crate::Storage), with one of the three kinds of outcome. Within its timeout the
/// client follows the leader from node to node, and repeats what was not executed, what only reads, and the commands of
/// transactions, which take effect once however often they are sent. A raw write is never sent again once it may have
/// taken effect: its outcome is *indeterminate* then, and its caller knows best what to do.
///
/// ```
/// # #[cfg(not(feature = "server"))]
/// # fn main() {}
/// # #[cfg(feature = "server")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use storage_pipeline::server::{Node, NodeConfig};
/// # let dir = tempfile::tempdir()?;
/// # let mut config = NodeConfig::default();
/// # (config.cluster_id, config.listen) = (7, "127.0.0.1:0".to_owned());
/// # (config.store.replica_id, config.store.dir) = (1, dir.path().into());
/// # config.store.tick = std::time::Duration::from_millis(10);
/// # let node = Node::start(config)?;
/// # let nodes = [node.address().to_string()];
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use storage_pipeline::{Client, ClientConfig};
/// // Some nodes of cluster 7, as host:port; the client learns of the others.
/// let client = Client::connect(ClientConfig::new(7, nodes)).await?;
/// client.raw_put(b"key", b"value").await.into_result()?;
/// let mut transfer = client.begin().await.into_result()?;
/// if transfer.get(b"alice").await?.is_none() {
///     transfer.put(b"alice", b"7");
/// }
/// transfer.commit().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # node.stop();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    config: ClientConfig,
    tls: Option<Tls>,
    regions: Regions,
    max_request_bytes: usize,
    route: Mutex<Route>,
    /// By the address of the node.
    lines: Mutex<HashMap<String, Arc<Line>>>,
}

impl Client {
    /// Runs a command and waits for its outcome, at most [`ClientConfig::timeout`].
    pub async fn execute<R: Request>(&self, request: R) -> Outcome<R::Output> {
        let command = request.into();
        typed(self.run(command, None, self.0.config.timeout).await, R::output)
    }

    /// Runs a command and waits for its outcome, at most this long.
    pub async fn execute_within<R: Request>(&self, request: R, timeout: Duration) -> Outcome<R::Output> {
        let command = request.into();
        typed(self.run(command, None, timeout).await, R::output)
    }

    /// Runs a command for a region that it names, in the epoch that it names or not at all. A command that has no keys has to
    /// name its region where there are several.
    pub async fn execute_in<R: Request>(&self, named: RegionContext, request: R) -> Outcome<R::Output> {
        let command = request.into();
        typed(self.run(command, Some(named), self.0.config.timeout).await, R::output)
    }

    /// A timestamp greater than every one that was given out before.
    pub async fn timestamp(&self) -> Outcome<u64> {
        match self.ask(FIRST_REGION, Ask::Timestamp, self.0.config.timeout).await {
            Outcome::Applied(Response::Timestamps(range)) => Outcome::Applied(range.first),
            // Whatever was done, nobody has a timestamp of it.
            Outcome::Applied(_) => Outcome::NotExecuted(Error::Unreachable(FOREIGN.into())),
            Outcome::NotExecuted(error) => Outcome::NotExecuted(error),
            Outcome::Indeterminate(cause) => Outcome::Indeterminate(cause),
        }
    }

    /// Begins a transaction that reads the store as it is now.
    pub async fn begin(&self) -> Outcome<Transaction<Self>> {
        self.timestamp().await.map(|start_ts| Transaction::new(self.clone(), start_ts))
    }

    /// Sets a raw key.
    pub async fn raw_put(&self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.execute(RawPut { key: key.to_vec(), value: value.to_vec() }).await
    }

    /// Reads a raw key.
    pub async fn raw_get(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.execute(RawGet { key: key.to_vec() }).await
    }

    /// Removes a raw key.
    pub async fn raw_delete(&self, key: &[u8]) -> Outcome<()> {
        self.execute(RawDelete { key: key.to_vec() }).await
    }

    /// The regions of the store, which do not change.
    #[must_use]
    pub fn regions(&self) -> &Regions {
        &self.0.regions
    }

    async fn run(
        &self,
        command: Command,
        named: Option<RegionContext>,
        timeout: Duration,
    ) -> Outcome<Response> {
        match self.0.regions.of_command(&command, named) {
            Ok(region) => self.ask(region, Ask::command(command, named), timeout).await,
            Err(error) => Outcome::NotExecuted(error),
        }
    }

    /// Asks one node after the other until the outcome is known or the time is up.
    async fn ask(&self, region: u64, ask: Ask, timeout: Duration) -> Outcome<Response> {
        if let Err(why) = ask.check_size(self.0.max_request_bytes) {
            return Outcome::NotExecuted(Error::InvalidCommand(why));
        }
        let place = usize::try_from(region - FIRST_REGION).expect("of the regions that there are");
        let now = Instant::now();
        let until = now.checked_add(timeout).unwrap_or(now + Duration::from_secs(86_400));
        let (mut course, mut backoff) = (Course::new(ask.kind()), Backoff::default());
        loop {
            let address = self.0.route.lock().of(place);
            let (attempt, leader) = self.attempt(&address, &ask, until).await;
            let is_over = Instant::now() >= until;
            match course.next(attempt, leader.is_some(), is_over) {
                Step::Done(outcome) => return outcome,
                Step::Again { whom, pauses } => {
                    match (whom, leader) {
                        (Whom::Same, _) => {}
                        (Whom::Leader, Some(leader)) => self.0.route.lock().leads(place, leader),
                        (Whom::Leader | Whom::Other, _) => self.0.route.lock().failed(place, &address),
                    }
                    if pauses {
                        let left = until.saturating_duration_since(Instant::now());
                        tokio::time::sleep(backoff.pause().min(left)).await;
                    }
                }
            }
        }
    }

    /// Asks one node. Yields also where the leader is, if the node said so.
    async fn attempt(&self, address: &str, ask: &Ask, until: Instant) -> (Attempt, Option<String>) {
        let left = || until.saturating_duration_since(Instant::now());
        let line = match tokio::time::timeout(left(), self.line(address)).await {
            Ok(Ok(line)) => line,
            Ok(Err(why)) => return (Attempt::NotSent(why), None),
            Err(_) => return (Attempt::NotSent("no connection was made in time".into()), None),
        };
        let left = left();
        let header = self.0.config.header(left);
        let answer = tokio::time::timeout(left + GRACE, ask.send(&line, header)).await;
        let (attempt, leader) = ask::judge(answer);
        if let Attempt::Lost(_) | Attempt::NotSent(_) = attempt {
            self.leave(address, &line);
        }
        (attempt, leader)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("config", &self.0.config).finish_non_exhaustive()
    }
}

/// The answer to a request, as `output` reads it.
fn typed<T>(outcome: Outcome<Response>, output: impl FnOnce(Response) -> Option<T>) -> Outcome<T> {
    match outcome.map(output) {
        Outcome::Applied(Some(output)) => Outcome::Applied(output),
        // It was executed, and nobody knows with what result.
        Outcome::Applied(None) => Outcome::Indeterminate(Cause::ConnectionLost(FOREIGN.into())),
        Outcome::NotExecuted(error) => Outcome::NotExecuted(error),
        Outcome::Indeterminate(cause) => Outcome::Indeterminate(cause),
    }
}
