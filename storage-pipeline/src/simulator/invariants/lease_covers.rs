//! Whoever may read under its lease has applied everything of which any caller was told that it is applied.

use std::collections::BTreeMap;

use super::{Acted, Deed, Invariant};
use crate::{observe::Moment, scheduler::task::Reply};

#[derive(Default)]
pub(super) struct LeaseCovers {
    /// The entries that commands became.
    entries: BTreeMap<u64, u64>,
    /// The last one of them whose caller was told.
    told: u64,
}

impl Invariant for LeaseCovers {
    fn name(&self) -> &'static str {
        "a lease covers what callers were told"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        for deed in acted.deeds {
            match deed {
                Deed::Moment(Moment::Proposed { index, .. }, Some(operation)) => {
                    self.entries.insert(*operation, *index);
                }
                Deed::Told { operation, reply: Reply::Applied(_) } => {
                    self.told = self.told.max(self.entries.get(operation).copied().unwrap_or(0));
                }
                _ => {}
            }
        }
        let behind = acted.claims.iter().find(|claim| claim.reads.is_some() && claim.applied < self.told);
        behind.map_or(Ok(()), |claim| {
            Err(format!(
                "replica {} reads under its lease with {} applied, and a caller was told of {}",
                claim.replica, claim.applied, self.told
            ))
        })
    }
}
