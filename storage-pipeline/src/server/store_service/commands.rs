//! Many requests over one stream, each answered as soon as its outcome is known. Hands commands to the store's front door.
//!
//! One task does both: whatever has come is submitted before anything is answered. Callers of the pipeline's threads leave
//! outcomes in a queue, and the first of them wakes the task for all that come until it runs.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;

use super::{Answer, StoreService};
use crate::protocol::{
    Malformed, Refusal,
    wire::{self, commands_request::Asked},
};

/// The answers to a stream of requests.
pub(crate) struct Commands<S> {
    service: StoreService,
    asked: S,
    /// Whether no more requests are read.
    is_over: bool,
    /// Requests that are not answered yet. With as many as a connection may have no more are read: the client has to wait.
    under_way: usize,
    tell: mpsc::UnboundedSender<(u64, Answer)>,
    told: mpsc::UnboundedReceiver<(u64, Answer)>,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<S> Commands<S> {
    pub(super) fn new(service: StoreService, asked: S) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        let mut watch = service.watch.clone();
        let stopped = Box::pin(async move { watch.stopped().await });
        Self { service, asked, is_over: false, under_way: 0, tell, told, stopped }
    }

    fn begin(&mut self, request: wire::CommandsRequest) {
        let wire::CommandsRequest { id, asked } = request;
        self.under_way += 1;
        let tell = self.tell.clone();
        // Where the stream is gone, nobody waits for the answer.
        let tell = move |answer| drop(tell.send((id, answer)));
        match asked {
            Some(Asked::Execute(request)) => self.service.submit(request, tell),
            Some(Asked::Timestamp(request)) => {
                let service = self.service.clone();
                tokio::spawn(async move { tell(service.give_timestamp(request).await) });
            }
            None => {
                let outcome = Err(Refusal::Malformed(Malformed::unset("asked")));
                tell(Answer { outcome, is_read: false });
            }
        }
    }
}

impl<S: Stream<Item = Result<wire::CommandsRequest, Status>> + Unpin> Stream for Commands<S> {
    type Item = Result<wire::CommandsReply, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if !this.is_over && this.stopped.as_mut().poll(context).is_ready() {
            // The store is closed: all that was submitted has its outcome.
            this.is_over = true;
        }
        while !this.is_over && this.under_way < this.service.max_connection_requests {
            match Pin::new(&mut this.asked).poll_next(context) {
                Poll::Ready(Some(Ok(request))) => this.begin(request),
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Some(Err(status))),
                Poll::Ready(None) => this.is_over = true,
                Poll::Pending => break,
            }
        }
        if this.under_way == 0 && this.is_over {
            return Poll::Ready(None);
        }
        this.told.poll_recv(context).map(|told| {
            let (id, answer) = told.expect("the sender lives as long as its receiver");
            this.under_way -= 1;
            Some(Ok(wire::CommandsReply { id, reply: Some(this.service.sent(answer)) }))
        })
    }
}

impl<S> fmt::Debug for Commands<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commands")
            .field("under_way", &self.under_way)
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}
