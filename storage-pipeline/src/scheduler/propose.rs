//! From a decided command to the raftstore: by a worker that decided it on a snapshot, or straight from its latches where
//! it reads nothing. Hands on proposals; what nobody takes comes back settled.

use crate::{
    clock,
    command::Processed,
    error::{Error, Outcome},
    mailbox::Refused,
    raftstore::{
        entry::{self, Owner},
        msg::Proposal,
    },
    scheduler::{
        Scheduler,
        task::{Job, Settled, Task},
    },
};

impl Scheduler {
    /// Goes on with a job that holds its latches. A blind one is proposed at once: a snapshot and a worker would cost it a
    /// wake-up each and tell it nothing.
    ///
    /// # Errors
    /// The command, settled, where nobody waits for it any more or nobody takes it.
    pub(super) fn propose_or_look(&self, job: Job) -> Result<(), Settled> {
        let is_blind = job.is_blind();
        let Job { task, command } = job;
        if let Err(error) = self.still_wanted(&task) {
            return Err(Settled::not_executed(task, error));
        }
        match if is_blind { command.process_blind() } else { Err(command) } {
            Ok(processed) => self.propose(task, None, processed),
            Err(command) => self.send_for_snapshot(Job { task, command }),
        }
    }

    /// Sends what a command came to. `term` is that of the snapshot it was decided on, if it was decided on one.
    ///
    /// # Errors
    /// The command, settled: there was nothing to change, its entry is too large, or the raftstore refuses it.
    pub(crate) fn propose(&self, task: Task, term: Option<u64>, processed: Processed) -> Result<(), Settled> {
        let Processed { modifies, response } = processed;
        if modifies.is_empty() {
            return Err(Settled::without_entry(task, Outcome::Applied(response)));
        }
        let region = task.context().region;
        let data = match entry::encode_within(self.config.max_entry_bytes, Owner::of(region), &modifies) {
            Ok(data) => data,
            // Once in the log it would be there for ever, and no other replica would get it.
            Err(why) => return Err(Settled::not_executed(task, Error::InvalidCommand(why))),
        };
        let proposal = Proposal { task, term, data, response };
        match self.reader.of(region).router.propose(proposal) {
            Ok(()) => Ok(()),
            Err(Refused::Full(proposal)) => Err(Settled::not_executed(proposal.task, Error::SchedTooBusy)),
            Err(Refused::Closed(proposal)) => Err(Settled::not_executed(proposal.task, self.refusal())),
        }
    }

    /// Whether going on with a command has a point.
    ///
    /// # Errors
    /// Why it has none. Its caller may have the answer already.
    pub(crate) fn still_wanted(&self, task: &Task) -> Result<(), Error> {
        let is_abandoned = task.context().phase.is_abandoned();
        if is_abandoned && self.is_closing() {
            return Err(self.refusal());
        }
        let is_late = is_abandoned || task.context().deadline <= clock::now();
        if is_late { Err(Error::DeadlineExceeded) } else { Ok(()) }
    }
}
