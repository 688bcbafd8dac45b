//! A command whose caller was told that it is not executed is never handed to raft afterwards.

use std::collections::BTreeMap;

use super::{Acted, Deed, Invariant};
use crate::{observe::Moment, scheduler::task::Reply};

#[derive(Default)]
pub(super) struct Promise {
    /// Commands that were promised never to run, with what was said.
    promised: BTreeMap<u64, Reply>,
}

impl Invariant for Promise {
    fn name(&self) -> &'static str {
        "not executed is a promise"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        for deed in acted.deeds {
            match deed {
                Deed::Told { operation, reply: reply @ Reply::NotExecuted(_) } => {
                    self.promised.insert(*operation, reply.clone());
                }
                Deed::Moment(Moment::Proposed { index, .. }, Some(operation)) => {
                    if let Some(reply) = self.promised.get(operation) {
                        return Err(format!("command {operation} is entry {index} after {reply:?}"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
