//! A network for a cluster of one: there is nobody to reach.

use std::{future::Future, io};

use openraft::{
    RaftNetworkFactory, RaftNetworkV2,
    alias::{SnapshotOf, VoteOf},
    errors::{RPCError, ReplicationClosed, StreamingError, Unreachable},
    network::RPCOption,
    raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse},
};

use super::{Config, machine::Machine};

/// Whoever is asked for is not there.
pub struct Nobody;

fn unreachable() -> Unreachable<Config> {
    Unreachable::new(&io::Error::other("a cluster of one has no network"))
}

impl RaftNetworkFactory<Config> for Nobody {
    type Network = Nobody;

    async fn new_client(&mut self, _: u64, (): &()) -> Nobody {
        Nobody
    }
}

impl RaftNetworkV2<Config> for Nobody {
    type SnapshotData = <Machine as openraft::storage::RaftStateMachine<Config>>::SnapshotData;

    async fn append_entries(
        &mut self,
        _: AppendEntriesRequest<Config>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<Config>, RPCError<Config>> {
        Err(RPCError::Unreachable(unreachable()))
    }

    async fn vote(
        &mut self,
        _: VoteRequest<Config>,
        _: RPCOption,
    ) -> Result<VoteResponse<Config>, RPCError<Config>> {
        Err(RPCError::Unreachable(unreachable()))
    }

    async fn full_snapshot(
        &mut self,
        _: VoteOf<Config>,
        _: SnapshotOf<Config, Self::SnapshotData>,
        _: impl Future<Output = ReplicationClosed> + Send + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<Config>, StreamingError<Config>> {
        Err(StreamingError::Unreachable(unreachable()))
    }
}
