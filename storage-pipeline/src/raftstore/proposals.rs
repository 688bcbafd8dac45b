//! Proposals that raft has and apply has not reached yet, in the order of their entries. Pure.

use std::collections::VecDeque;

use crate::{command::Response, scheduler::task::Task};

/// A proposal at the place in the log that its entry has while its term's leader leads.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) task: Task,
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) response: Response,
}

/// A queue in ascending order of index.
#[derive(Debug, Default)]
pub(crate) struct Proposals(VecDeque<Pending>);

impl Proposals {
    /// Adds the newest proposal.
    pub(crate) fn push(&mut self, pending: Pending) {
        debug_assert!(self.0.back().is_none_or(|last| last.index < pending.index), "one proposal per index");
        self.0.push_back(pending);
    }

    /// Takes out those whose place in the log lies at or before `index`: an entry at that place is committed, this
    /// proposal's or another's. Apply compares the terms.
    pub(crate) fn take_through(&mut self, index: u64) -> Vec<Pending> {
        let count = self.0.partition_point(|pending| pending.index <= index);
        self.0.drain(..count).collect()
    }

    /// Whether raft has no proposal that apply does not have.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes out everything, for the loss of leadership.
    pub(crate) fn take_all(&mut self) -> Vec<Pending> {
        self.0.drain(..).collect()
    }
}
