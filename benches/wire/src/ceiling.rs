//! What gRPC alone allows: the pipeline's service over a map in memory.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use benches::round::Failure;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming, transport::Server};

use crate::store::{
    self, ChangeMembersRequest, CommandsReply, CommandsRequest, ExecuteRequest, Nothing, RawPut,
    RegionsReply, RegionsRequest, Reply, TimestampRequest, TransferLeaderRequest,
    command::Command,
    commands_request::Asked,
    reply::Outcome,
    response::Response as Answer,
    store_server::{Store, StoreServer},
};

#[derive(Default)]
struct InMemory(Arc<Map>);

type Map = Mutex<BTreeMap<Vec<u8>, Vec<u8>>>;

fn put(map: &Map, request: ExecuteRequest) -> Result<Reply, Status> {
    let Some(Command::RawPut(RawPut { key, value })) = request.command.and_then(|command| command.command)
    else {
        return Err(not_measured());
    };
    map.lock().unwrap_or_else(PoisonError::into_inner).insert(key, value);
    let applied = store::Response { response: Some(Answer::Done(Nothing {})) };
    Ok(Reply { outcome: Some(Outcome::Applied(applied)), ..Reply::default() })
}

fn not_measured() -> Status {
    Status::unimplemented("only puts are measured")
}

#[tonic::async_trait]
impl Store for InMemory {
    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<Reply>, Status> {
        put(&self.0, request.into_inner()).map(Response::new)
    }

    type CommandsStream = Pin<Box<dyn Stream<Item = Result<CommandsReply, Status>> + Send>>;

    async fn commands(
        &self,
        request: Request<Streaming<CommandsRequest>>,
    ) -> Result<Response<Self::CommandsStream>, Status> {
        let store = Arc::clone(&self.0);
        let replies = request.into_inner().map(move |asked| match asked? {
            CommandsRequest { id, asked: Some(Asked::Execute(request)) } => {
                Ok(CommandsReply { id, reply: Some(put(&store, request)?) })
            }
            _ => Err(not_measured()),
        });
        Ok(Response::new(Box::pin(replies)))
    }

    async fn timestamp(&self, _: Request<TimestampRequest>) -> Result<Response<Reply>, Status> {
        Err(not_measured())
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
