//! What an operator does with a cluster through a client: who belongs to a region's group, and who leads it.

use super::{Client, ask::Ask, connect};
use crate::{
    command::Response,
    error::{Error, Outcome},
    members::{MemberChange, Members},
    region::FIRST_REGION,
};

impl Client {
    /// Who belongs to the group of a region, as far as the node that is believed to lead it has applied changes.
    ///
    /// # Errors
    /// [`Error::RegionNotFound`], or why no node answers.
    pub async fn members(&self, region: u64) -> Result<Members, Error> {
        let place = self.place(region)?;
        let address = self.0.route.lock().of(place);
        let reply = match connect::regions(&address, self.0.tls.as_ref(), &self.0.config).await {
            Err(Error::Unreachable(_)) => connect::find(&self.0.config, self.0.tls.as_ref()).await?,
            reply => reply?,
        };
        let told = reply.regions.get(place).ok_or(Error::RegionNotFound { region })?;
        Ok(Members::from(told))
    }

    /// Changes who belongs to the group of a region, all at one time or nothing, and waits until that is applied. A node that joins
    /// has to run, with the addresses of the others, and they with its own; it should join as a learner first. What makes no sense
    /// is *not executed*, with [`Error::MemberChange`].
    ///
    /// It is not repeated once it may have taken effect: [`members`](Self::members) says whether it has.
    pub async fn change_members(&self, region: u64, changes: &[MemberChange]) -> Outcome<()> {
        self.operate(region, Ask::ChangeMembers(region, changes.to_vec())).await
    }

    /// Makes a voter lead a region, and waits until it does. Where it leads already, that is done.
    pub async fn transfer_leader(&self, region: u64, to: u64) -> Outcome<()> {
        self.operate(region, Ask::TransferLeader { region, to }).await
    }

    async fn operate(&self, region: u64, ask: Ask) -> Outcome<()> {
        if let Err(error) = self.place(region) {
            return Outcome::NotExecuted(error);
        }
        let outcome = self.ask(region, ask, self.0.config.timeout).await;
        super::typed(outcome, |response| matches!(response, Response::Done).then_some(()))
    }

    /// The place of a region among those that there are.
    fn place(&self, region: u64) -> Result<usize, Error> {
        let place = region.checked_sub(FIRST_REGION).and_then(|place| usize::try_from(place).ok());
        let place = place.filter(|place| *place < self.0.regions.all().len());
        place.ok_or(Error::RegionNotFound { region })
    }
}
