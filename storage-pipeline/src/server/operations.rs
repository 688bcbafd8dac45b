//! What operators ask of a node: who is to belong to a region's group, and who is to lead it. Hands wishes to the store and
//! waits, without a thread, for what comes of them.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::{
    command::Response,
    error::{Cause, Error, Outcome},
    members::{MemberChange, MemberChangeRefused},
    raftstore::status::Role,
    storage::Storage,
};

/// How often it is looked whether another node leads.
const LOOK: Duration = Duration::from_millis(5);

/// Changes who belongs to a region's group.
pub(super) async fn change_members(
    storage: &Storage,
    region: u64,
    changes: Vec<MemberChange>,
    patience: Duration,
) -> Outcome<Response> {
    let Some(region) = storage.region(region) else {
        return Outcome::NotExecuted(Error::RegionNotFound { region });
    };
    match region.wish_members(&changes) {
        Ok(reply) => match timeout(patience, reply).await {
            Ok(Ok(outcome)) => outcome.map(|_| Response::Done),
            Ok(Err(_)) => Outcome::Indeterminate(Cause::Closed),
            Err(_) => Outcome::Indeterminate(Cause::DeadlineExceeded),
        },
        Err(error) => Outcome::NotExecuted(error),
    }
}

/// Makes another voter lead a region. A leader that is asked for itself has nothing to do.
pub(super) async fn transfer_leader(
    storage: &Storage,
    region: u64,
    to: u64,
    patience: Duration,
) -> Outcome<Response> {
    let Some(region) = storage.region(region) else {
        return Outcome::NotExecuted(Error::RegionNotFound { region });
    };
    let status = region.status();
    if status.role != Role::Leader {
        return Outcome::NotExecuted(Error::NotLeader { leader: status.leader });
    }
    if status.replica == to {
        return Outcome::Applied(Response::Done);
    }
    match region.members() {
        Ok(members) if members.voters.contains(&to) => {}
        Ok(_) => {
            let why = MemberChangeRefused::NoVoter { replica: to };
            return Outcome::NotExecuted(Error::MemberChange(why));
        }
        Err(error) => return Outcome::NotExecuted(error),
    }
    region.transfer_leader(to);
    let led = async {
        loop {
            let status = region.status();
            match status.leader {
                Some(leader) if status.role != Role::Leader => break leader,
                _ => sleep(LOOK).await,
            }
        }
    };
    match timeout(patience, led).await {
        Ok(leader) if leader == to => Outcome::Applied(Response::Done),
        // What the voter was told may still make it the leader.
        Ok(_) => Outcome::Indeterminate(Cause::LeadershipLost),
        Err(_) => Outcome::Indeterminate(Cause::DeadlineExceeded),
    }
}
