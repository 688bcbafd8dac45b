//! Turns committed entries into one write batch and tells which commands that settles. Pure.

use raft::eraftpb::{Entry, EntryType};

use crate::{
    apply::{
        membership::{MembersChanged, Membership},
        state::{ApplyState, save_membership},
        task::ApplyTask,
    },
    engine::{EngineError, Modify, WriteBatch},
    error::{Error, Outcome},
    planted::planted,
    raftstore::{
        entry::{self, Owner},
        proposals::Pending,
    },
    scheduler::task::Settled,
};

/// The applying side of one replica.
#[derive(Debug)]
pub(crate) struct Delegate {
    /// Whose entries it applies.
    owner: Owner,
    state: ApplyState,
    membership: Membership,
    /// Whether the data does not have it yet.
    unsaved: bool,
    /// The last batch, emptied, and what it wrote as the state: the next one uses their memory.
    spare: (WriteBatch, Option<Modify>),
}

/// What one write batch settles, once it is written.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) batch: WriteBatch,
    pub(crate) settled: Vec<Settled>,
    pub(crate) bytes: usize,
    /// The changes of members in it, for the peer.
    pub(crate) changes: Vec<MembersChanged>,
}

impl Delegate {
    /// A replica of a region that has applied this much. A membership that its data does not have goes into its next batch.
    pub(crate) fn new(region: u64, state: ApplyState, membership: Membership, unsaved: bool) -> Self {
        Self { owner: Owner::of(region), state, membership, unsaved, spare: Default::default() }
    }

    /// A snapshot has brought the data, its members included, to another place.
    pub(crate) fn restart(&mut self, state: ApplyState, membership: Membership) {
        *self = Self::new(self.owner.region, state, membership, false);
    }

    pub(crate) fn conf_ver(&self) -> u64 {
        self.membership.conf_ver
    }

    pub(crate) fn state(&self) -> ApplyState {
        self.state
    }

    /// What the next batch starts from: nothing.
    pub(crate) fn begin(&mut self) -> Prepared {
        Prepared { batch: std::mem::take(&mut self.spare.0), ..Prepared::default() }
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
            self.append(entry, prepared)?;
            self.state = ApplyState { index: entry.index, term: entry.term };
            while let Some(pending) = proposals.next_if(|pending| pending.index <= entry.index) {
                prepared.settled.push(settle(pending, entry));
            }
        }
        prepared.bytes += task.bytes;
        Ok(())
    }

    /// Adds a new membership and, last, the applied index, so that they are written together with the data.
    pub(crate) fn seal(&mut self, prepared: &mut Prepared) {
        if std::mem::take(&mut self.unsaved) {
            save_membership(&self.membership, &mut prepared.batch);
        }
        self.state.save(self.spare.1.take(), &mut prepared.batch);
    }

    /// Takes back a batch that was sealed and is written.
    pub(crate) fn written(&mut self, mut batch: WriteBatch) {
        // Sealing added the state last.
        let state = batch.pop();
        batch.clear();
        self.spare = (batch, state);
    }

    fn append(&mut self, entry: &Entry, prepared: &mut Prepared) -> Result<(), Error> {
        if entry.get_entry_type() != EntryType::EntryNormal {
            let changed = self.membership.apply(entry)?;
            self.unsaved |= changed.is_some();
            prepared.changes.extend(changed);
            return Ok(());
        }
        if entry.data.is_empty() {
            // A new leader's first entry, which says only that its term has begun.
            return Ok(());
        }
        entry::decode(self.owner, &entry.data, |modify| prepared.batch.push(modify))
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

/// The entry at a proposal's place is either the proposal's own, or of another term and took its place.
fn settle(pending: Pending, entry: &Entry) -> Settled {
    let is_own = pending.index == entry.index && (pending.term == entry.term || planted!(MatchByIndexOnly));
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
