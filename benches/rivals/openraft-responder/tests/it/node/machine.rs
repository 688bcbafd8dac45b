//! A state machine that adds up what is written and answers with the sum. It makes no snapshots.

use std::io;

use futures_util::{Stream, TryStreamExt};
use openraft::{
    EntryPayload,
    alias::{LogIdOf, SnapshotMetaOf, SnapshotOf, StoredMembershipOf},
    storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine},
};

use super::Config;

/// The sum, and how far the log is in it.
#[derive(Clone, Default)]
pub struct Machine {
    sum: u64,
    applied: Option<LogIdOf<Config>>,
    membership: StoredMembershipOf<Config>,
}

fn no_snapshots() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this state machine makes no snapshots")
}

impl RaftSnapshotBuilder<Config> for Machine {
    type SnapshotData = ();

    async fn build_snapshot(&mut self) -> Result<SnapshotOf<Config, ()>, io::Error> {
        Err(no_snapshots())
    }
}

impl RaftStateMachine<Config> for Machine {
    type SnapshotData = ();
    type SnapshotBuilder = Self;

    async fn applied_state(
        &mut self,
    ) -> Result<(Option<LogIdOf<Config>>, StoredMembershipOf<Config>), io::Error> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<Config>, io::Error>> + Unpin + Send,
    {
        while let Some((entry, responder)) = entries.try_next().await? {
            self.applied = Some(entry.log_id);
            match entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Normal(value) => self.sum += value,
                EntryPayload::Membership(membership) => {
                    self.membership = StoredMembershipOf::<Config>::new(Some(entry.log_id), membership);
                }
            }
            if let Some(responder) = responder {
                responder.send(self.sum);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn install_snapshot(&mut self, _: &SnapshotMetaOf<Config>, (): ()) -> Result<(), io::Error> {
        Err(no_snapshots())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<SnapshotOf<Config, ()>>, io::Error> {
        Ok(None)
    }
}
