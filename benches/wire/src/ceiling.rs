//! What gRPC alone allows: the pipeline's service over a map in memory.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

use benches::round::Failure;
use tonic::{Request, Response, Status, transport::Server};

use crate::store::{
    self, ChangeMembersRequest, ExecuteRequest, Nothing, RegionsReply, RegionsRequest, Reply,
    TimestampRequest, TransferLeaderRequest,
    store_server::{Store, StoreServer},
};

#[derive(Default)]
struct InMemory(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

#[tonic::async_trait]
impl Store for InMemory {
    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<Reply>, Status> {
        match request.into_inner().command.and_then(|command| command.command) {
            Some(store::command::Command::RawPut(store::RawPut { key, value })) => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, value);
                let response = store::response::Response::Done(Nothing {});
                let applied = store::Response { response: Some(response) };
                let outcome = Some(store::reply::Outcome::Applied(applied));
                Ok(Response::new(Reply { outcome, ..Reply::default() }))
            }
            _ => Err(Status::unimplemented("only puts are measured")),
        }
    }

    async fn timestamp(&self, _: Request<TimestampRequest>) -> Result<Response<Reply>, Status> {
        Err(Status::unimplemented("only puts are measured"))
    }

    async fn regions(&self, _: Request<RegionsRequest>) -> Result<Response<RegionsReply>, Status> {
        Err(Status::unimplemented("there is one node and no region"))
    }

    async fn change_members(&self, _: Request<ChangeMembersRequest>) -> Result<Response<Reply>, Status> {
        Err(Status::unimplemented("there is one node and no region"))
    }

    async fn transfer_leader(&self, _: Request<TransferLeaderRequest>) -> Result<Response<Reply>, Status> {
        Err(Status::unimplemented("there is one node and no region"))
    }
}

/// Serves until the process is killed.
pub(crate) async fn serve(listen: SocketAddr) -> Result<(), Failure> {
    Ok(Server::builder()
        .tcp_nodelay(true)
        .add_service(StoreServer::new(InMemory::default()))
        .serve(listen)
        .await?)
}
