//! The nodes of the cluster, as they are configured at the moment: whom the handshake lets in, and where clients are sent.

use std::collections::BTreeMap;

use parking_lot::RwLock;

/// Where each node can be reached, this one included.
#[derive(Debug)]
pub(crate) struct Peers {
    node_id: u64,
    /// Where this one is, if nothing else is configured.
    own: String,
    addresses: RwLock<BTreeMap<u64, String>>,
}

impl Peers {
    /// As they are configured for a node that can be reached here.
    pub(crate) fn new(node_id: u64, own: String, addresses: BTreeMap<u64, String>) -> Self {
        let peers = Self { node_id, own, addresses: RwLock::default() };
        peers.set(addresses);
        peers
    }

    /// These are the nodes from now on.
    pub(crate) fn set(&self, mut addresses: BTreeMap<u64, String>) {
        addresses.entry(self.node_id).or_insert_with(|| self.own.clone());
        *self.addresses.write() = addresses;
    }

    /// Whether a node is one of the others.
    pub(crate) fn knows(&self, id: u64) -> bool {
        id != self.node_id && self.addresses.read().contains_key(&id)
    }

    /// Where clients reach a node.
    pub(crate) fn address(&self, id: u64) -> Option<String> {
        self.addresses.read().get(&id).cloned()
    }

    /// All of them, this one included.
    pub(crate) fn all(&self) -> Vec<(u64, String)> {
        self.addresses.read().iter().map(|(id, address)| (*id, address.clone())).collect()
    }
}
