//! A store as one of several replicas: what reaches it from the others, what it knows of them, and the wish that
//! another one leads.

use std::sync::{Arc, Weak};

use callback_slot::WaitError;

use crate::{
    apply::state::load_membership,
    clock,
    config::Config,
    error::{Cause, Error, OpenError, Outcome},
    mailbox::Refused,
    members::{MemberChange, MemberChangeRefused, Members},
    observe::Observe,
    raftstore::{
        msg::ChangeMembers,
        router::Router,
        snapshot::SnapshotChunk,
        staging::Staging,
        status::ReplicaStatus,
        transport::{self, Message, MessageRefused, Transport},
    },
    storage::{Parts, Storage, open, running::Running},
    threads,
};

impl Storage {
    /// Opens one replica of a group whose members reach each other through `transport`. It returns once the replica
    /// runs; whether it leads, and when, is decided with the others. What the others send it is handed to
    /// [`receive`](Self::receive). [`Cluster`](super::Cluster) does all that for a group in one process.
    ///
    /// A group begins with the replicas that [`Config::voters`] names, and each must be opened with the same list. Later
    /// the replica knows the members from its own data.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_replica(
        config: Config,
        parts: Parts,
        transport: Arc<dyn Transport>,
        observer: Option<Arc<dyn Observe>>,
    ) -> Result<Self, OpenError> {
        config.validate().map_err(OpenError::Config)?;
        open::open(config, parts, Some(transport), observer).map(|running| Self(Arc::new(running)))
    }

    /// Takes a message that another replica's raft sent. Never blocks.
    ///
    /// # Errors
    /// Why it is not taken. A message that belongs here is lost then, and raft sends it again.
    pub fn receive(&self, message: Message) -> Result<(), MessageRefused> {
        transport::check(&message, self.0.scheduler.config.replica_id)?;
        self.0.scheduler.reader.router.raft(message)
    }

    /// Takes a chunk of a snapshot that another replica sends, on whatever thread brings it. It is written beside the data
    /// and installed once the whole snapshot is there and raft wants it.
    ///
    /// # Errors
    /// Why it is not taken. The snapshot is of no use then; raft takes another one later.
    pub fn receive_chunk(&self, chunk: &SnapshotChunk) -> Result<(), MessageRefused> {
        let Running { scheduler, threads, .. } = &*self.0;
        if chunk.to != scheduler.config.replica_id {
            return Err(MessageRefused::WrongReplica { to: chunk.to });
        }
        if scheduler.is_closing() {
            return Err(MessageRefused::Closed);
        }
        threads.staging.stage(chunk).map_err(|_| MessageRefused::NotKept)
    }

    /// What this replica knows of its group.
    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        self.0.status.get()
    }

    /// What a window of timestamps is bound to: the term that this replica surely leads at this moment. Nobody else gives
    /// out any where there is nobody else.
    pub(super) fn fence(&self) -> Option<u64> {
        if self.0.is_alone {
            return Some(0);
        }
        self.0.scheduler.reader.lease.term_at(clock::now())
    }

    /// What the others can reach of this replica: where messages go once they are checked, and where chunks wait. The
    /// latter keeps nothing open.
    pub(super) fn inbox(&self) -> (Router, Weak<Staging>) {
        (self.0.scheduler.reader.router.clone(), Arc::downgrade(&self.0.threads.staging))
    }

    /// Asks a voter to take over the leadership, if this replica has it. Returns at once, before anything has come of it;
    /// [`status`](Self::status) shows who leads. Writes are refused as [`NotLeader`](crate::Error::NotLeader) meanwhile.
    /// Where nothing comes of it within an election timeout, this replica goes on leading.
    pub fn transfer_leader(&self, to: u64) {
        self.0.scheduler.reader.router.transfer_leader(to);
    }

    /// Changes who belongs to the group, and waits until that is applied, at most [`Config::default_timeout`]. Only the
    /// leader can do it, one change after the other. Several replicas may change at once: then a majority of the old voters
    /// and one of the new are needed until all have changed, and the answer comes when only the new ones count.
    ///
    /// A replica that is to join is opened with the same [`Config::voters`] as all others, and gets what it lacks. A leader
    /// that removes itself gives the leadership up when that is applied, and the others elect one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use storage_pipeline::{Config, members::MemberChange, storage::Cluster};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let mut config = Config::new(dir.path());
    /// config.tick = Duration::from_millis(10);
    /// let mut cluster = Cluster::open(config, 1)?;
    /// cluster.start(2)?;
    /// let leader = cluster.wait_for_leader(Duration::from_secs(10)).expect("one of one elects itself");
    /// while !leader.change_members(&[MemberChange::AddLearner(2)]).is_applied() {}
    /// let members = leader.change_members(&[MemberChange::AddVoter(2)]).into_result()?;
    /// assert_eq!(members.voters, [1, 2].into());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// What is refused is *not executed*, with [`Error::MemberChange`] where the change makes no sense now.
    pub fn change_members(&self, changes: &[MemberChange]) -> Outcome<Members> {
        let scheduler = &self.0.scheduler;
        if threads::is_pipeline() {
            return Outcome::NotExecuted(Error::WouldBlockPipeline);
        }
        if self.0.is_alone {
            return Outcome::NotExecuted(Error::MemberChange(MemberChangeRefused::Alone));
        }
        let (callback, reply) = callback_slot::reply();
        let wish = ChangeMembers { changes: changes.to_vec(), callback };
        match scheduler.reader.router.change_members(wish) {
            Ok(()) => {}
            Err(Refused::Full(_)) => return Outcome::NotExecuted(Error::SchedTooBusy),
            Err(Refused::Closed(_)) => return Outcome::NotExecuted(scheduler.refusal()),
        }
        match reply.wait_timeout(scheduler.config.default_timeout) {
            Ok(outcome) => outcome,
            Err(WaitError::TimedOut(_)) => Outcome::Indeterminate(Cause::DeadlineExceeded),
            Err(WaitError::Dropped) => Outcome::Indeterminate(Cause::Closed),
        }
    }

    /// The members, as far as this replica has applied changes of them.
    ///
    /// # Errors
    /// The data engine's refusal, or [`Error::Corrupt`].
    pub fn members(&self) -> Result<Members, Error> {
        let stored = load_membership(&*self.0.threads.engine.snapshot())?;
        Ok(match stored {
            Some(membership) => Members::from(&membership.members),
            None => {
                let voters = self.0.scheduler.config.voters.iter().copied().collect();
                Members { voters, ..Members::default() }
            }
        })
    }
}
