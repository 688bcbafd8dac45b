//! Neither the term nor the commit nor the applied index of a replica ever falls while it lives, and its term does not
//! fall when it starts again.

use std::collections::BTreeMap;

use super::{Acted, Invariant};

#[derive(Default)]
pub(super) struct Monotonic {
    /// Life, term, commit and applied index of each replica.
    last: BTreeMap<u64, (u64, [u64; 3])>,
}

impl Invariant for Monotonic {
    fn name(&self) -> &'static str {
        "monotonic"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        let raft = acted.peer.raft();
        let now = [raft.term, raft.raft_log.committed, acted.applied];
        let Some((life, before)) = self.last.insert(acted.who.replica, (acted.who.life, now)) else {
            return Ok(());
        };
        let compared = if life == acted.who.life { 3 } else { 1 };
        for (what, (before, now)) in
            ["term", "commit index", "applied index"].iter().zip(before.iter().zip(&now)).take(compared)
        {
            if now < before {
                return Err(format!(
                    "the {what} of replica {} fell from {before} to {now}",
                    acted.who.replica
                ));
            }
        }
        Ok(())
    }
}
