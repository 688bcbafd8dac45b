//! Plugs the slot into openraft: a write that goes through raft answers through a callback.
