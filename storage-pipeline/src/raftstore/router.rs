//! A region's handle in the raftstore for everybody else. A refused message comes back with everything it owns.

use crate::{
    mailbox::{Mailbox, Refused},
    observe::{FailPoint, Observer},
    raftstore::{
        msg::{ApplyRes, ChangeMembers, Proposal, StoreMsg, ToRegion},
        transport::{Message, MessageRefused},
    },
    region::FIRST_REGION,
    scheduler::task::Job,
};

/// Sends to the raftstore, about one region. Proposals and reads are bounded, reports never are: their room was reserved at admission.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    mailbox: Mailbox<ToRegion>,
    region: u64,
    capacity: usize,
    observer: Observer,
}

impl Router {
    /// The handle of the first region.
    pub(crate) fn new(mailbox: Mailbox<ToRegion>, capacity: usize, observer: Observer) -> Self {
        Self { mailbox, region: FIRST_REGION, capacity, observer }
    }

    /// The handle of another region.
    pub(crate) fn of(&self, region: u64) -> Self {
        Self { region, ..self.clone() }
    }

    /// Asks for a proposal.
    ///
    /// # Errors
    /// The proposal itself.
    pub(crate) fn propose(&self, proposal: Proposal) -> Result<(), Refused<Proposal>> {
        if self.observer.fails(FailPoint::ProposalRefused) {
            return Err(Refused::Full(proposal));
        }
        self.send(StoreMsg::Propose(proposal)).map_err(|refused| {
            refused.map(|message| match message {
                StoreMsg::Propose(proposal) => proposal,
                other => unreachable!("a mailbox gives back what it was given, not {other:?}"),
            })
        })
    }

    /// Asks for a confirmation of leadership.
    ///
    /// # Errors
    /// The job itself.
    pub(crate) fn read(&self, job: Job) -> Result<(), Refused<Job>> {
        self.send(StoreMsg::Read(job)).map_err(|refused| {
            refused.map(|message| match message {
                StoreMsg::Read(job) => job,
                other => unreachable!("a mailbox gives back what it was given, not {other:?}"),
            })
        })
    }

    /// Hands on a message of another replica, which was checked.
    ///
    /// # Errors
    /// There is no room for it, or nobody to take it. It is gone then, which raft puts right.
    pub(crate) fn raft(&self, message: Message) -> Result<(), MessageRefused> {
        self.send(StoreMsg::Raft(Box::new(message))).map_err(|refused| match refused {
            Refused::Full(_) => MessageRefused::Full,
            Refused::Closed(_) => MessageRefused::Closed,
        })
    }

    /// Reports how the sending of a snapshot went. A raftstore that has ended does not need to know.
    pub(crate) fn snapshot_sent(&self, to: u64, taken: bool) {
        let _ = self.mailbox.send(self.about(StoreMsg::SnapshotSent { to, taken }));
    }

    /// Wishes that another voter leads. A wish for which there is no room is not fulfilled.
    pub(crate) fn transfer_leader(&self, to: u64) {
        let _ = self.send(StoreMsg::TransferLeader(to));
    }

    /// Wishes for a change of members.
    ///
    /// # Errors
    /// The wish itself.
    pub(crate) fn change_members(&self, wish: ChangeMembers) -> Result<(), Refused<ChangeMembers>> {
        self.send(StoreMsg::ChangeMembers(Box::new(wish))).map_err(|refused| {
            refused.map(|message| match message {
                StoreMsg::ChangeMembers(wish) => *wish,
                other => unreachable!("a mailbox gives back what it was given, not {other:?}"),
            })
        })
    }

    /// Reports how far apply got. The raftstore is woken only where something waits for that; one that has ended does not
    /// need to know.
    pub(crate) fn applied(&self, res: ApplyRes) {
        let _ = self.mailbox.leave(self.about(StoreMsg::Applied(res)));
    }

    /// Lets the log be truncated. A raftstore that has ended truncates after the next start.
    pub(crate) fn truncate(&self, index: u64) {
        let _ = self.mailbox.send(self.about(StoreMsg::Truncate(index)));
    }

    fn send(&self, message: StoreMsg) -> Result<(), Refused<StoreMsg>> {
        let sent = self.mailbox.try_send(self.about(message), self.capacity);
        sent.map_err(|refused| refused.map(|about| about.message))
    }

    fn about(&self, message: StoreMsg) -> ToRegion {
        ToRegion { region: self.region, message }
    }
}
