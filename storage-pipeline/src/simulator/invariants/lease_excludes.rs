//! While one replica may read under its lease, nobody leads a later term.

use super::{Acted, Claim, Invariant};

#[derive(Default)]
pub(super) struct LeaseExcludes;

impl Invariant for LeaseExcludes {
    fn name(&self) -> &'static str {
        "a lease excludes other leaders"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        let leader = acted.claims.iter().max_by_key(|claim| claim.leads);
        let Some(Claim { replica: leader, leads: Some(led), .. }) = leader else { return Ok(()) };
        let stale = acted.claims.iter().find_map(|claim| {
            let term = claim.reads.filter(|term| term < led)?;
            Some(format!(
                "replica {} reads under its lease of term {term}, and {leader} leads {led}",
                claim.replica
            ))
        });
        stale.map_or(Ok(()), Err)
    }
}
