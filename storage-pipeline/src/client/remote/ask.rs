//! One request to one node, and what its answer or its silence says. Hands on how the attempt ended.

use std::sync::Arc;

use prost::Message;
use tokio::time::error::Elapsed;
use tonic::{ConnectError, Status};

use super::{
    line::Line,
    retry::{Attempt, Kind},
};
use crate::{
    command::Command,
    error::{Cause, Error, InvalidCommand, Outcome},
    members::MemberChange,
    protocol::{
        Reply,
        dial::causes,
        wire::{self, commands_request::Asked},
    },
    region::RegionContext,
};

/// Bytes of a request that goes over the stream of its connection. A larger one is a call of its own, so that it does not keep
/// the others waiting.
const MOST_ON_THE_STREAM: usize = 64 << 10;

/// What is asked.
#[derive(Debug)]
pub(super) enum Ask {
    /// To run a command.
    Command(Kind, wire::Command, Option<wire::RegionContext>),
    /// For a timestamp.
    Timestamp,
    /// To change who belongs to the group of a region.
    ChangeMembers(u64, Vec<MemberChange>),
    /// To make a node lead a region.
    TransferLeader { region: u64, to: u64 },
}

impl Ask {
    pub(super) fn command(command: Command, named: Option<RegionContext>) -> Self {
        Self::Command(Kind::of(&command), command.into(), named.map(wire::RegionContext::from))
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Command(kind, ..) => *kind,
            Self::Timestamp => Kind::Read,
            // A second attempt would be told that there is nothing to do, whoever did it.
            Self::ChangeMembers(..) => Kind::Once,
            Self::TransferLeader { .. } => Kind::Repeatable,
        }
    }

    /// Whether a node would take it. One that it does not take is lost without a typed answer.
    pub(super) fn check_size(&self, limit: usize) -> Result<(), InvalidCommand> {
        let size = match self {
            Self::Command(_, command, _) => command.encoded_len(),
            Self::Timestamp | Self::ChangeMembers(..) | Self::TransferLeader { .. } => 0,
        };
        if size > limit {
            return Err(InvalidCommand::TooLarge { field: "command".into(), size, limit });
        }
        Ok(())
    }

    /// Sends it, and waits for the answer.
    ///
    /// # Errors
    /// How the attempt ended without one.
    pub(super) async fn send(&self, line: &Line, header: wire::Header) -> Result<wire::Reply, Attempt> {
        let header = Some(header);
        let reply = match self {
            Self::Command(_, command, region) => {
                let (command, region) = (Some(command.clone()), *region);
                let request = wire::ExecuteRequest { header, command, region };
                if request.encoded_len() <= MOST_ON_THE_STREAM {
                    return line.ask(Asked::Execute(request)).await;
                }
                line.client()?.execute(request).await
            }
            Self::Timestamp => return line.ask(Asked::Timestamp(wire::TimestampRequest { header })).await,
            Self::ChangeMembers(region, changes) => {
                let changes = changes.iter().copied().map(wire::MemberChange::from).collect();
                let request = wire::ChangeMembersRequest { header, region: *region, changes };
                line.client()?.change_members(request).await
            }
            Self::TransferLeader { region, to } => {
                let request = wire::TransferLeaderRequest { header, region: *region, to: *to };
                line.client()?.transfer_leader(request).await
            }
        };
        reply.map(tonic::Response::into_inner).map_err(|status| failed(&status))
    }
}

/// How an attempt ended that was answered like this, and where the leader is, if the answer says so.
pub(super) fn judge(answer: Result<Result<wire::Reply, Attempt>, Elapsed>) -> (Attempt, Option<String>) {
    let reply = match answer {
        Err(_) => return (Attempt::Lost(Cause::DeadlineExceeded), None),
        Ok(Err(attempt)) => return (attempt, None),
        Ok(Ok(reply)) => Reply::try_from(reply),
    };
    match reply {
        Ok(Reply { outcome: Ok(outcome), leader_address }) => (Attempt::Answered(outcome), leader_address),
        Ok(Reply { outcome: Err(refusal), .. }) => {
            let refused = Error::Refused(refusal.to_string().into());
            (Attempt::Answered(Outcome::NotExecuted(refused)), None)
        }
        // Whatever it meant to say, it had the request.
        Err(malformed) => (Attempt::Lost(Cause::ConnectionLost(malformed.to_string().into())), None),
    }
}

/// A status says nothing for certain, whoever made it, but for that of a connection that was never made.
fn failed(status: &Status) -> Attempt {
    let why: Arc<str> = format!("{:?}: {}", status.code(), causes(status)).into();
    let error: &(dyn std::error::Error + 'static) = status;
    let was_made =
        std::iter::successors(Some(error), |error| error.source()).all(|error| !error.is::<ConnectError>());
    if was_made { Attempt::Lost(Cause::ConnectionLost(why)) } else { Attempt::NotSent(why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Refusal;

    #[test]
    fn only_a_connection_that_was_never_made_is_sure_not_to_have_carried_the_request() {
        for status in [Status::unavailable("gone"), Status::unknown("?"), Status::invalid_argument("bad")] {
            assert!(matches!(failed(&status), Attempt::Lost(Cause::ConnectionLost(_))));
        }
        let mut status = Status::unavailable("nobody there");
        status.set_source(Arc::new(ConnectError("refused".into())));
        assert!(matches!(failed(&status), Attempt::NotSent(_)));
    }

    #[test]
    fn an_answer_that_means_nothing_leaves_doubt_and_a_refusal_leaves_none() {
        assert!(matches!(judge(Ok(Ok(wire::Reply::default()))).0, Attempt::Lost(_)));
        let reply = Reply { outcome: Err(Refusal::Cluster(8)), leader_address: None };
        let (attempt, leader) = judge(Ok(Ok(reply.into())));
        let Attempt::Answered(Outcome::NotExecuted(Error::Refused(why))) = attempt else {
            panic!("{attempt:?}")
        };
        assert_eq!((&*why, leader), ("this is cluster 8", None));
    }
}
