//! Turns committed entries into one write batch and tells which commands that settles. Pure.

use raft::{eraftpb::EntryType, prelude::Entry};

use crate::{
    apply::task::ApplyTask,
    engine::{Cf, EngineError, Modify, Snapshot, WriteBatch, modify},
    error::{Error, Outcome},
    raftstore::proposals::Pending,
    scheduler::task::Settled,
};

/// Where the applied index and term stand, beside the data that they describe.
const APPLIED_KEY: &[u8] = b"applied";

/// How far a replica has applied its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApplyState {
    pub(crate) index: u64,
    pub(crate) term: u64,
}

impl ApplyState {
    /// Reads the state from the data. Fresh data has applied nothing.
    pub(crate) fn load(snapshot: &dyn Snapshot) -> Result<Self, Error> {
        let Some(bytes) = snapshot.get(Cf::Meta, APPLIED_KEY)? else { return Ok(Self::default()) };
        let word = |range| bytes.get(range).and_then(|b: &[u8]| b.try_into().ok()).map(u64::from_be_bytes);
        match (word(0..8), word(8..16), bytes.len()) {
            (Some(index), Some(term), 16) => Ok(Self { index, term }),
            _ => Err(Error::Corrupt("the applied index has not 16 bytes".into())),
        }
    }

    fn to_modify(self) -> Modify {
        let bytes = [self.index.to_be_bytes(), self.term.to_be_bytes()].concat();
        Modify::Put(Cf::Meta, APPLIED_KEY.to_vec(), bytes)
    }
}

/// The applying side of one replica.
#[derive(Debug)]
pub(crate) struct Delegate {
    state: ApplyState,
}

/// What one write batch settles, once it is written.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) batch: WriteBatch,
    pub(crate) settled: Vec<Settled>,
    pub(crate) bytes: usize,
}

impl Delegate {
    pub(crate) fn new(state: ApplyState) -> Self {
        Self { state }
    }

    pub(crate) fn state(&self) -> ApplyState {
        self.state
    }

    /// Adds a task to a batch. Replies are ready but must not leave before the batch is written.
    ///
    /// # Errors
    /// An entry that cannot be applied. Nothing of the batch may be written then, and the replica has to stop: to
    /// skip an entry is to differ from every other replica.
    pub(crate) fn prepare(&mut self, task: ApplyTask, prepared: &mut Prepared) -> Result<(), Error> {
        let mut proposals = task.proposals.into_iter().peekable();
        for entry in &task.entries {
            self.check_order(entry)?;
            append(entry, &mut prepared.batch)?;
            self.state = ApplyState { index: entry.index, term: entry.term };
            while let Some(pending) = proposals.next_if(|pending| pending.index <= entry.index) {
                prepared.settled.push(settle(pending, entry));
            }
        }
        prepared.bytes += task.bytes;
        Ok(())
    }

    /// Adds the applied index, so that data and index are written together.
    pub(crate) fn seal(&self, prepared: &mut Prepared) {
        prepared.batch.push(self.state.to_modify());
    }

    fn check_order(&self, entry: &Entry) -> Result<(), Error> {
        if entry.index == self.state.index + 1 && entry.term >= self.state.term {
            return Ok(());
        }
        let ApplyState { index, term } = self.state;
        let what = format!("entry {} of term {} after entry {index} of term {term}", entry.index, entry.term);
        Err(Error::Corrupt(what.into()))
    }
}

fn append(entry: &Entry, batch: &mut WriteBatch) -> Result<(), Error> {
    if entry.get_entry_type() != EntryType::EntryNormal {
        let what = format!("entry {} changes the membership of a store that has one replica", entry.index);
        return Err(Error::Corrupt(what.into()));
    }
    if entry.data.is_empty() {
        // A new leader's first entry, which says only that its term has begun.
        return Ok(());
    }
    modify::decode(&entry.data, |modify| batch.push(modify))
}

/// The entry at a proposal's place is either the proposal's own, or of another term and took its place.
fn settle(pending: Pending, entry: &Entry) -> Settled {
    let is_own = pending.index == entry.index && pending.term == entry.term;
    let reply =
        if is_own { Outcome::Applied(pending.response) } else { Outcome::NotExecuted(Error::StaleCommand) };
    Settled::without_entry(pending.task, reply)
}

impl From<Error> for EngineError {
    fn from(error: Error) -> Self {
        Self::new(error)
    }
}

#[cfg(test)]
#[path = "delegate_tests.rs"]
mod tests;
