//! What an operator asks of a cluster from the command line. Hands it to a client, prints what came of it, and says it by the status.

use std::{fmt, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use storage_pipeline::{Client, ClientConfig, Error, Outcome, members::MemberChange};

/// The status where nobody knows what came of it.
const UNKNOWN: u8 = 3;

/// How the cluster is reached, and which of its regions is meant.
#[derive(Args)]
struct Cluster {
    /// Id of the cluster.
    #[arg(long)]
    cluster_id: u64,
    /// Where a node listens, host:port. Once is enough; named more than once, any of them may be down.
    #[arg(long = "node", required = true)]
    nodes: Vec<String>,
    /// The region.
    #[arg(long, default_value_t = 1)]
    region: u64,
    /// How long it may take, in milliseconds.
    #[arg(long, default_value_t = 10_000)]
    timeout_ms: u64,
    /// The certificate of the authority, in PEM, where the nodes have TLS.
    #[arg(long)]
    tls_authority: Option<PathBuf>,
    /// A certificate of it.
    #[arg(long)]
    tls_certificate: Option<PathBuf>,
    /// The key that belongs to it.
    #[arg(long)]
    tls_key: Option<PathBuf>,
}

/// What there is to do with members.
#[derive(Args)]
pub(crate) struct Members {
    #[command(flatten)]
    cluster: Cluster,
    /// A node that votes from now on.
    #[arg(long)]
    add_voter: Vec<u64>,
    /// A node that gets all entries and does not vote.
    #[arg(long)]
    add_learner: Vec<u64>,
    /// A node that does not belong to the group any more.
    #[arg(long)]
    remove: Vec<u64>,
}

/// Who is to lead.
#[derive(Args)]
pub(crate) struct Transfer {
    #[command(flatten)]
    cluster: Cluster,
    /// The node.
    #[arg(long)]
    to: u64,
}

impl Members {
    pub(crate) fn run(&self) -> ExitCode {
        let changes: Vec<_> = [
            (&self.add_voter, MemberChange::AddVoter as fn(u64) -> MemberChange),
            (&self.add_learner, MemberChange::AddLearner),
            (&self.remove, MemberChange::Remove),
        ]
        .into_iter()
        .flat_map(|(ids, change)| ids.iter().copied().map(change))
        .collect();
        self.cluster.with_client(async |client, region| {
            if !changes.is_empty() {
                match client.change_members(region, &changes).await {
                    Outcome::Applied(()) => {}
                    other => return other,
                }
            }
            match client.members(region).await {
                Ok(members) => {
                    for (what, ids) in [
                        ("voters", members.voters),
                        ("learners", members.learners),
                        ("outgoing", members.outgoing),
                    ] {
                        let ids: Vec<_> = ids.iter().map(u64::to_string).collect();
                        println!("{what}: {}", ids.join(", "));
                    }
                    Outcome::Applied(())
                }
                Err(error) => Outcome::NotExecuted(error),
            }
        })
    }
}

impl Transfer {
    pub(crate) fn run(&self) -> ExitCode {
        self.cluster.with_client(async |client, region| client.transfer_leader(region, self.to).await)
    }
}

impl Cluster {
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new(self.cluster_id, self.nodes.iter().cloned());
        config.timeout = Duration::from_millis(self.timeout_ms);
        config.tls.authority = self.tls_authority.clone();
        config.tls.certificate = self.tls_certificate.clone();
        config.tls.key = self.tls_key.clone();
        config
    }

    /// Connects, asks, and says how that went.
    fn with_client(&self, ask: impl AsyncFnOnce(Client, u64) -> Outcome<()>) -> ExitCode {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return failed(&error),
        };
        let outcome = runtime.block_on(async {
            match Client::connect(self.config()).await {
                Ok(client) => ask(client, self.region).await,
                Err(error) => Outcome::NotExecuted::<()>(error),
            }
        });
        match outcome {
            Outcome::Applied(()) => ExitCode::SUCCESS,
            Outcome::NotExecuted(error) => failed::<Error>(&error),
            Outcome::Indeterminate(cause) => {
                eprintln!("storage-pipeline: nobody knows whether it was done: {cause}");
                ExitCode::from(UNKNOWN)
            }
        }
    }
}

fn failed<E: fmt::Display>(why: &E) -> ExitCode {
    eprintln!("storage-pipeline: {why}");
    ExitCode::FAILURE
}
