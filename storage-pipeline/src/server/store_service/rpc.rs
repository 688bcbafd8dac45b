//! The calls of the service, each of which is admitted, run and answered. Hands commands and wishes on.

use tonic::{Request, Response, Status, Streaming};

use super::{StoreService, commands::Commands};
use crate::{
    members::MemberChange,
    protocol::wire::{self, store_server::Store},
    server::operations,
};

#[tonic::async_trait]
impl Store for StoreService {
    async fn execute(&self, request: Request<wire::ExecuteRequest>) -> Result<Response<wire::Reply>, Status> {
        let (callback, reply) = callback_slot::reply();
        self.submit(request.into_inner(), |answer| callback.call(answer));
        let answer = reply.await.expect("a callback runs exactly once, whatever becomes of its command");
        Ok(Response::new(self.sent(answer)))
    }

    type CommandsStream = Commands<Streaming<wire::CommandsRequest>>;

    async fn commands(
        &self,
        request: Request<Streaming<wire::CommandsRequest>>,
    ) -> Result<Response<Self::CommandsStream>, Status> {
        Ok(Response::new(Commands::new(self.clone(), request.into_inner())))
    }

    async fn timestamp(
        &self,
        request: Request<wire::TimestampRequest>,
    ) -> Result<Response<wire::Reply>, Status> {
        Ok(Response::new(self.sent(self.give_timestamp(request.into_inner()).await)))
    }

    async fn regions(
        &self,
        request: Request<wire::RegionsRequest>,
    ) -> Result<Response<wire::RegionsReply>, Status> {
        if let Err(refusal) = self.admit(request.into_inner().header) {
            let refused = Some(refusal.into());
            return Ok(Response::new(wire::RegionsReply { refused, ..Default::default() }));
        }
        let regions = self.storage.regions().map(|region| {
            let range = region.range().clone();
            let leader = region.status().leader.unwrap_or(0);
            let (id, start_key, end_key) = (range.id, range.start_key, range.end_key);
            // Data that cannot be read has stopped the store, or is about to.
            let members = region.members().unwrap_or_default();
            wire::Region { id, start_key, end_key, leader, ..members.into() }
        });
        let nodes = self.identity.peers.all().into_iter().map(|(id, address)| wire::Node { id, address });
        Ok(Response::new(wire::RegionsReply {
            regions: regions.collect(),
            nodes: nodes.collect(),
            max_request_bytes: self.max_request_bytes as u64,
            refused: None,
        }))
    }

    async fn change_members(
        &self,
        request: Request<wire::ChangeMembersRequest>,
    ) -> Result<Response<wire::Reply>, Status> {
        let wire::ChangeMembersRequest { header, region, changes } = request.into_inner();
        let changes = changes.into_iter().map(MemberChange::try_from).collect();
        let change = |changes, time| operations::change_members(&self.storage, region, changes, time);
        Ok(Response::new(self.sent(self.asked(header, changes, change).await)))
    }

    async fn transfer_leader(
        &self,
        request: Request<wire::TransferLeaderRequest>,
    ) -> Result<Response<wire::Reply>, Status> {
        let wire::TransferLeaderRequest { header, region, to } = request.into_inner();
        let transfer = |to, time| operations::transfer_leader(&self.storage, region, to, time);
        Ok(Response::new(self.sent(self.asked(header, Ok(to), transfer).await)))
    }
}
