//! Every command is answered once. That none is left unanswered is seen at the end, when clients still wait.

use super::{Acted, Deed, Invariant};

#[derive(Default)]
pub(super) struct ExactlyOnce;

impl Invariant for ExactlyOnce {
    fn name(&self) -> &'static str {
        "exactly once"
    }

    fn acted(&mut self, acted: &Acted<'_>) -> Result<(), String> {
        for deed in acted.deeds {
            if let Deed::Told { operation, reply } = deed {
                let replies = acted.operations[operation].replies;
                if replies != 1 {
                    return Err(format!(
                        "command {operation} was answered {replies} times, at last {reply:?}"
                    ));
                }
            }
        }
        Ok(())
    }
}
