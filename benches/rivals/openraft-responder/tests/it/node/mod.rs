//! A cluster of one: openraft with everything in memory, whose state machine adds up what is written.

mod log;
mod machine;
mod network;

use std::{sync::Arc, thread, time::Duration};

use openraft::{
    EntryPayload, OptionalSend, Raft, RaftTypeConfig, SnapshotPolicy,
    alias::ResponderOf,
    errors::Fatal,
    impls::{BoxedErrorSource, InlineBatch, Vote, leader_id_adv::LeaderId},
    raft::ClientWriteResult,
    vote::RaftLeaderId,
};
use openraft_responder::CallbackResponder;
use openraft_rt_tokio::TokioRuntime;
use tokio::runtime::Runtime;

use self::{log::Log, machine::Machine, network::Nobody};

/// openraft's defaults, but for the responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Config;

impl RaftTypeConfig for Config {
    type D = u64;
    type R = u64;
    type NodeId = u64;
    type Node = ();
    type Term = u64;
    type LeaderId = LeaderId<u64, u64>;
    type Vote = Vote<Self::LeaderId>;
    type Payload = EntryPayload<u64, u64, ()>;
    type Entry = openraft::Entry<<Self::LeaderId as RaftLeaderId>::Committed, Self::Payload>;
    type AsyncRuntime = TokioRuntime;
    type Responder<T>
        = CallbackResponder<T>
    where
        T: OptionalSend + 'static;
    type Batch<T>
        = InlineBatch<T>
    where
        T: OptionalSend + 'static;
    type ErrorSource = BoxedErrorSource;
}

/// A running node.
pub struct Node {
    raft: Raft<Config, Machine>,
    runtime: Runtime,
}

impl Node {
    /// A node that leads a cluster of itself.
    pub fn leader() -> Self {
        let node = Self::without_cluster();
        node.runtime.block_on(async {
            node.raft
                .initialize([(1, ())].into_iter().collect::<std::collections::BTreeMap<_, _>>())
                .await
                .unwrap();
            let leads = |leader| leader == Some(1);
            let wait = node.raft.wait(Some(Duration::from_secs(10)));
            wait.metrics(|metrics| leads(metrics.current_leader), "the node leads").await.unwrap();
        });
        node
    }

    /// A node that belongs to no cluster, so nobody leads.
    pub fn without_cluster() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let config = openraft::Config { snapshot_policy: SnapshotPolicy::Never, ..Default::default() };
        let config = Arc::new(config.validate().unwrap());
        let raft =
            runtime.block_on(Raft::new(1, config, Nobody, Log::default(), Machine::default())).unwrap();
        Node { raft, runtime }
    }

    /// Starts a write whose answer goes to `responder`.
    pub fn write(
        &self,
        value: u64,
        responder: ResponderOf<Config, ClientWriteResult<Config>>,
    ) -> Result<(), Fatal<Config>> {
        self.runtime.block_on(self.raft.client_write_ff(value, Some(responder)))
    }

    /// Stops the node and waits until it has stopped.
    pub fn stop(&self) {
        self.runtime.block_on(self.raft.shutdown()).unwrap();
    }

    /// Stops the node while others go on.
    pub fn stop_soon(&self) {
        let raft = self.raft.clone();
        self.runtime.spawn(async move { raft.shutdown().await });
        thread::yield_now();
    }
}
