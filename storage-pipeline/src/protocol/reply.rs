//! What a node answers: an outcome, or a refusal of the request itself. Hands both to the client as they were.

use std::fmt;

use super::{
    Malformed,
    wire::{self, refusal::Why, reply::Outcome as Of},
};
use crate::{command::Response, error::Outcome};

/// Why a node can make nothing of a request, which has had no effect and never will have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The node speaks this version of the protocol.
    ProtocolVersion(u32),
    /// The node belongs to this cluster.
    Cluster(u64),
    /// It is malformed.
    Malformed(Malformed),
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) outcome: Result<Outcome<Response>, Refusal>,
    /// Where the leader can be reached, where that is another node and known.
    pub(crate) leader_address: Option<String>,
}

impl From<Refusal> for wire::Refusal {
    fn from(refusal: Refusal) -> Self {
        let why = match refusal {
            Refusal::ProtocolVersion(version) => Why::ProtocolVersion(version),
            Refusal::Cluster(id) => Why::ClusterId(id),
            Refusal::Malformed(Malformed { field, what }) => Why::Malformed(wire::Malformed { field, what }),
        };
        Self { why: Some(why) }
    }
}

impl TryFrom<wire::Refusal> for Refusal {
    type Error = Malformed;

    fn try_from(refusal: wire::Refusal) -> Result<Self, Malformed> {
        Ok(match refusal.why.ok_or_else(|| Malformed::unset("refused.why"))? {
            Why::ProtocolVersion(version) => Self::ProtocolVersion(version),
            Why::ClusterId(id) => Self::Cluster(id),
            Why::Malformed(wire::Malformed { field, what }) => Self::Malformed(Malformed { field, what }),
        })
    }
}

impl From<Reply> for wire::Reply {
    fn from(Reply { outcome, leader_address }: Reply) -> Self {
        let outcome = match outcome {
            Ok(Outcome::Applied(response)) => Of::Applied(response.into()),
            Ok(Outcome::NotExecuted(error)) => Of::NotExecuted(error.into()),
            Ok(Outcome::Indeterminate(cause)) => Of::Indeterminate(cause.into()),
            Err(refusal) => Of::Refused(refusal.into()),
        };
        Self { outcome: Some(outcome), leader_address: leader_address.unwrap_or_default() }
    }
}

impl TryFrom<wire::Reply> for Reply {
    type Error = Malformed;

    fn try_from(reply: wire::Reply) -> Result<Self, Malformed> {
        let outcome = match reply.outcome.ok_or_else(|| Malformed::unset("reply.outcome"))? {
            Of::Applied(response) => Ok(Outcome::Applied(response.try_into()?)),
            Of::NotExecuted(error) => Ok(Outcome::NotExecuted(error.try_into()?)),
            Of::Indeterminate(cause) => Ok(Outcome::Indeterminate(cause.try_into()?)),
            Of::Refused(refusal) => Err(refusal.try_into()?),
        };
        let leader_address = Some(reply.leader_address).filter(|address| !address.is_empty());
        Ok(Self { outcome, leader_address })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProtocolVersion(version) => write!(f, "version {version} of the protocol is spoken here"),
            Self::Cluster(id) => write!(f, "this is cluster {id}"),
            Self::Malformed(why) => write!(f, "{why}"),
        }
    }
}
