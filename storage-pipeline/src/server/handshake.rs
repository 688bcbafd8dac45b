//! Who may connect: what two nodes tell each other first, and why one refuses the other. Pure; hands on the sender's id.

use std::{fmt, sync::Arc};

use super::{peers::Peers, wire::Hello};

/// The version of what nodes say to each other. It changes with every change that an older node would misread.
pub const PROTOCOL_VERSION: u32 = 1;

/// Who a node is and whom it knows.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) cluster_id: u64,
    pub(crate) node_id: u64,
    pub(crate) peers: Arc<Peers>,
}

/// Why another node is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeRefused {
    /// It did not say who it is.
    NoHello,
    /// It speaks another version of the protocol.
    ProtocolVersion {
        /// Its version.
        theirs: u32,
    },
    /// It belongs to another cluster.
    WrongCluster {
        /// The cluster of the node that refuses.
        ours: u64,
        /// The cluster that the other one named.
        theirs: u64,
    },
    /// It means another node.
    WrongNode {
        /// Id of the node that refuses.
        ours: u64,
        /// The id that the other one named.
        theirs: u64,
    },
    /// No such peer is configured.
    UnknownPeer {
        /// The id that it gave itself.
        id: u64,
    },
}

impl Identity {
    /// What this node says to another one first.
    pub(crate) fn hello(&self, to: u64) -> Hello {
        let Self { cluster_id, node_id, .. } = *self;
        Hello { protocol_version: PROTOCOL_VERSION, cluster_id, from: node_id, to }
    }

    /// Whether a node that says this may connect. Returns its id.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self, hello: Option<&Hello>) -> Result<u64, HandshakeRefused> {
        let hello = hello.ok_or(HandshakeRefused::NoHello)?;
        if hello.protocol_version != PROTOCOL_VERSION {
            return Err(HandshakeRefused::ProtocolVersion { theirs: hello.protocol_version });
        }
        self.check_cluster(hello.cluster_id)?;
        if hello.to != self.node_id {
            return Err(HandshakeRefused::WrongNode { ours: self.node_id, theirs: hello.to });
        }
        self.check_peer(hello.from)?;
        Ok(hello.from)
    }

    /// Whether a node is still one of the others.
    ///
    /// # Errors
    /// It is not, or never was.
    pub(crate) fn check_peer(&self, id: u64) -> Result<(), HandshakeRefused> {
        if self.peers.knows(id) { Ok(()) } else { Err(HandshakeRefused::UnknownPeer { id }) }
    }

    /// Whether somebody who names this cluster means this one.
    ///
    /// # Errors
    /// It means another one.
    pub(crate) fn check_cluster(&self, theirs: u64) -> Result<(), HandshakeRefused> {
        let ours = self.cluster_id;
        if theirs == ours { Ok(()) } else { Err(HandshakeRefused::WrongCluster { ours, theirs }) }
    }
}

impl fmt::Display for HandshakeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHello => f.write_str("the first frame does not say who sends it"),
            Self::ProtocolVersion { theirs } => {
                write!(f, "protocol version {theirs} is not spoken here, version {PROTOCOL_VERSION} is")
            }
            Self::WrongCluster { ours, theirs } => write!(f, "this is cluster {ours}, not {theirs}"),
            Self::WrongNode { ours, theirs } => write!(f, "this is node {ours}, not {theirs}"),
            Self::UnknownPeer { id } => write!(f, "no peer with id {id} is known here"),
        }
    }
}

impl std::error::Error for HandshakeRefused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_peer_of_this_cluster_that_means_this_node_is_let_in() {
        let [one, two] = [(1, 2), (2, 1)].map(|(node_id, peer)| {
            let peers = Peers::new(node_id, String::new(), [(peer, String::new())].into());
            Identity { cluster_id: 7, node_id, peers: Arc::new(peers) }
        });
        let hello = two.hello(1);
        assert_eq!(one.check(Some(&hello)), Ok(2));
        let refused = [
            (None, HandshakeRefused::NoHello),
            (Some(Hello { protocol_version: 9, ..hello }), HandshakeRefused::ProtocolVersion { theirs: 9 }),
            (Some(Hello { cluster_id: 8, ..hello }), HandshakeRefused::WrongCluster { ours: 7, theirs: 8 }),
            (Some(Hello { to: 3, ..hello }), HandshakeRefused::WrongNode { ours: 1, theirs: 3 }),
            (Some(Hello { from: 3, ..hello }), HandshakeRefused::UnknownPeer { id: 3 }),
            (Some(Hello { from: 1, ..hello }), HandshakeRefused::UnknownPeer { id: 1 }),
        ];
        for (hello, why) in refused {
            assert_eq!(one.check(hello.as_ref()), Err(why));
            assert!(!why.to_string().is_empty());
        }
    }
}
