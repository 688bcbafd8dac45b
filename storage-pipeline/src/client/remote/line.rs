//! A connection to a node, and the stream on it that carries commands. Hands each answer to whoever waits for its number.
//!
//! The commands of all tasks that share a client go over one stream, so that gRPC costs each of them a message and not a
//! call. What becomes of the stream becomes of all that are under way on it: once it ends, none of them is answered.

use std::{collections::HashMap, fmt, sync::Arc};

use callback_slot::{Callback, reply};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Streaming, transport::Channel};

use super::{connect::dial, retry::Attempt};
use crate::{
    error::Cause,
    protocol::{
        dial::causes,
        tls::Tls,
        wire::{self, commands_request::Asked, store_client::StoreClient},
    },
};

/// Commands that wait for their turn to be written, before whoever asks waits himself.
const QUEUE: usize = 256;

/// A connection. It ends, and its stream with it, once nobody uses it any more.
pub(super) struct Line {
    channel: Channel,
    asks: mpsc::Sender<wire::CommandsRequest>,
    waiting: Arc<Waiting>,
}

impl Line {
    /// Connects to a node.
    ///
    /// # Errors
    /// Why nobody answers there, in words.
    pub(super) async fn open(address: &str, tls: Option<&Tls>) -> Result<Self, Arc<str>> {
        let channel = dial(address, tls).await?;
        let (asks, asked) = mpsc::channel(QUEUE);
        let answers = client(channel.clone()).commands(ReceiverStream::new(asked)).await;
        let answers = answers.map_err(|status| Arc::from(causes(&status)))?.into_inner();
        let waiting = Arc::new(Waiting::default());
        tokio::spawn(hear(answers, Hearing(Arc::clone(&waiting))));
        Ok(Self { channel, asks, waiting })
    }

    /// What makes calls of its own on this connection.
    ///
    /// # Errors
    /// The stream has ended, and with it the connection, before anything was sent.
    pub(super) fn client(&self) -> Result<StoreClient<Channel>, Attempt> {
        match self.waiting.why_ended() {
            None => Ok(client(self.channel.clone())),
            Some(why) => Err(Attempt::NotSent(why)),
        }
    }

    /// Asks something over the stream, and waits for the answer.
    ///
    /// # Errors
    /// How the attempt ended without one.
    pub(super) async fn ask(&self, asked: Asked) -> Result<wire::Reply, Attempt> {
        let (tell, reply) = reply();
        let id = self.waiting.enter(tell).map_err(Attempt::NotSent)?;
        let _forgets = Forgets { waiting: &self.waiting, id };
        let request = wire::CommandsRequest { id, asked: Some(asked) };
        let why = || self.waiting.why_ended().unwrap_or_else(|| "the stream has ended".into());
        // A request that comes back has never been on the stream.
        self.asks.send(request).await.map_err(|_| Attempt::NotSent(why()))?;
        reply.await.map_err(|_| Attempt::Lost(Cause::ConnectionLost(why())))
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

fn client(channel: Channel) -> StoreClient<Channel> {
    StoreClient::new(channel).max_decoding_message_size(usize::MAX)
}

/// Hands on answers until the stream ends.
async fn hear(mut answers: Streaming<wire::CommandsReply>, hearing: Hearing) {
    let why = loop {
        match answers.message().await {
            Ok(Some(wire::CommandsReply { id, reply })) => hearing.0.tell(id, reply.unwrap_or_default()),
            Ok(None) => break "the node has ended the stream".into(),
            Err(status) => break format!("{:?}: {}", status.code(), causes(&status)).into(),
        }
    };
    hearing.0.end(why);
}

/// Who hears the answers. Without it there are none.
struct Hearing(Arc<Waiting>);

impl Drop for Hearing {
    fn drop(&mut self) {
        self.0.end("nobody hears the answers any more: the runtime has stopped".into());
    }
}

/// Takes a request out of those that wait, answered or not.
struct Forgets<'a> {
    waiting: &'a Waiting,
    id: u64,
}

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        self.waiting.take(self.id);
    }
}

/// Who waits for which answer.
#[derive(Default)]
struct Waiting(Mutex<Table>);

#[derive(Default)]
struct Table {
    next: u64,
    by_id: HashMap<u64, Callback<wire::Reply>>,
    /// Why there are no more answers.
    ended: Option<Arc<str>>,
}

impl Waiting {
    /// Adds one who waits. Yields the number of his request.
    ///
    /// # Errors
    /// Why there are no more answers.
    fn enter(&self, tell: Callback<wire::Reply>) -> Result<u64, Arc<str>> {
        let mut table = self.0.lock();
        if let Some(why) = &table.ended {
            return Err(Arc::clone(why));
        }
        let id = table.next;
        table.next += 1;
        table.by_id.insert(id, tell);
        Ok(id)
    }

    /// Answers a request, if somebody waits for that.
    fn tell(&self, id: u64, reply: wire::Reply) {
        if let Some(tell) = self.take(id) {
            tell.call(reply);
        }
    }

    fn take(&self, id: u64) -> Option<Callback<wire::Reply>> {
        self.0.lock().by_id.remove(&id)
    }

    /// There are no more answers. Whoever waits learns of it; the first reason counts.
    fn end(&self, why: Arc<str>) {
        let mut table = self.0.lock();
        table.ended.get_or_insert(why);
        let unanswered = std::mem::take(&mut table.by_id);
        drop(table);
        // Each wakes somebody, who may look at the table.
        drop(unanswered);
    }

    /// Why there are no more answers, if there are none.
    fn why_ended(&self) -> Option<Arc<str>> {
        self.0.lock().ended.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> wire::Reply {
        wire::Reply { outcome: None, leader_address: text.to_owned() }
    }

    #[test]
    fn each_answer_goes_to_whoever_asked_and_one_that_nobody_waits_for_to_nobody() {
        let waiting = Waiting::default();
        let (first, first_reply) = reply();
        let (second, second_reply) = reply();
        let (third, third_reply) = reply();
        let ids = [first, second, third].map(|tell| waiting.enter(tell).unwrap());
        waiting.tell(ids[1], refused("b"));
        waiting.tell(ids[1], refused("again"));
        waiting.tell(99, refused("nobody"));
        drop(Forgets { waiting: &waiting, id: ids[2] });
        waiting.tell(ids[2], refused("c"));
        waiting.tell(ids[0], refused("a"));
        let told = |reply: callback_slot::Reply<wire::Reply>| {
            reply.try_into_value().unwrap().map(|reply| reply.leader_address)
        };
        assert_eq!(told(first_reply), Ok("a".to_owned()));
        assert_eq!(told(second_reply), Ok("b".to_owned()));
        assert!(told(third_reply).is_err());
        assert!(waiting.0.lock().by_id.is_empty());
    }

    #[test]
    fn the_end_of_the_stream_reaches_all_who_wait_and_all_who_come() {
        let waiting = Arc::new(Waiting::default());
        let (tell, reply_of_one) = reply();
        waiting.enter(tell).unwrap();
        waiting.end("gone".into());
        assert!(reply_of_one.try_into_value().unwrap().is_err());
        // Whoever hears answers no more ends it, too, and the first reason stays.
        drop(Hearing(Arc::clone(&waiting)));
        let (tell, reply_of_one) = reply();
        assert_eq!(waiting.enter(tell), Err("gone".into()));
        assert!(reply_of_one.try_into_value().unwrap().is_err());
    }
}
