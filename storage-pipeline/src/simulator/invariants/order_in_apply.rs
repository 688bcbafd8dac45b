//! A caller is told that its command is applied only once the batch with its entry is written and its index
//! published, and no batch is written before the entries are durable here.

use std::collections::BTreeMap;

use super::{Acted, Deed, Invariant, Who};
use crate::{observe::Moment, scheduler::task::Reply};

#[derive(Default)]
pub(super) struct OrderInApply {
    applied: BTreeMap<Who, u64>,
    proposed: BTreeMap<u64, u64>,
}

impl Invariant for OrderInApply {
    fn name(&self) -> &'static str {
        "order in apply"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        for deed in acted.deeds {
            match deed {
                Deed::Moment(Moment::Proposed { index, .. }, Some(operation)) => {
                    self.proposed.insert(*operation, *index);
                }
                Deed::Moment(Moment::Applied { index, .. }, _) => {
                    self.applied.insert(acted.who, *index);
                }
                Deed::Told { operation, reply: Reply::Applied(_) } => {
                    let Some(index) = self.proposed.get(operation) else { continue };
                    let applied = self.applied.get(&acted.who).copied().unwrap_or(0);
                    if applied < *index {
                        return Err(format!(
                            "the caller of command {operation}, entry {index}, is told, and {applied} is applied"
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
