//! The course of a command: which stage it is in, and which one a moment begins. Pure; hands on stages.

use crate::observe::Moment;

/// A part of the life of a command. One begins where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A write waits for its latches.
    Latches,
    /// It waits for its snapshot.
    Snapshot,
    /// It waits for a worker.
    Workers,
    /// Its check, and the way to the raftstore.
    Process,
    /// Raft is given its entry.
    Propose,
    /// The entry is written to the log and sent to the others, until enough of them have it.
    Commit,
    /// The entry waits for apply and is applied.
    Apply,
    /// Its caller waits for who tells it, and is told.
    Tell,
    /// It waits for who releases its latches.
    Release,
}

/// Where a command is.
#[derive(Debug)]
pub(super) struct Course {
    stage: Stage,
    /// Its caller was told, perhaps before its fate was known.
    is_told: bool,
}

impl Course {
    /// A command that was just admitted.
    pub(super) fn begin(is_read: bool) -> Self {
        Self { stage: if is_read { Stage::Snapshot } else { Stage::Latches }, is_told: false }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Passes a moment that concerns the command. Yields the stage that begins with it, if one does.
    pub(super) fn pass(&mut self, moment: Moment) -> Option<Stage> {
        let next = match moment {
            Moment::LatchesHeld { is_blind: false, .. } => Stage::Snapshot,
            Moment::LatchesHeld { is_blind: true, .. } | Moment::Processing { .. } => Stage::Process,
            Moment::SnapshotTaken { .. } => Stage::Workers,
            Moment::Proposing { .. } => Stage::Propose,
            Moment::Proposed { .. } => Stage::Commit,
            Moment::Committed { .. } => Stage::Apply,
            Moment::Applied { .. } if self.is_told => Stage::Release,
            Moment::Applied { .. } | Moment::TellingCaller { .. } => Stage::Tell,
            Moment::CallerTold { .. } => {
                self.is_told = true;
                // One that is told early stays where it is.
                if self.stage != Stage::Tell {
                    return None;
                }
                Stage::Release
            }
            _ => return None,
        };
        (std::mem::replace(&mut self.stage, next) != next).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::OutcomeKind;

    const CID: u64 = 1;
    const TELLING: Moment = Moment::TellingCaller { cid: CID, applied_at: None };
    const TOLD: Moment = Moment::CallerTold { cid: CID, outcome: OutcomeKind::Applied };
    const PROPOSED: Moment = Moment::Proposed { cid: CID, region: 1, index: 5, term: 1 };
    const COMMITTED: Moment = Moment::Committed { region: 1, index: 5 };
    const APPLIED: Moment = Moment::Applied { region: 1, index: 5 };

    fn stages(is_read: bool, moments: &[Moment]) -> Vec<Stage> {
        let mut course = Course::begin(is_read);
        let first = course.stage();
        [first].into_iter().chain(moments.iter().filter_map(|moment| course.pass(*moment))).collect()
    }

    #[test]
    fn a_write_that_looks_passes_every_stage_and_one_that_does_not_skips_the_snapshot_and_the_workers() {
        use Stage::*;
        let looks = [
            Moment::LatchesHeld { cid: CID, is_blind: false },
            Moment::SnapshotTaken { cid: CID, under_lease: true },
            Moment::Processing { cid: CID },
        ];
        let then = [Moment::Proposing { cid: CID }, PROPOSED, COMMITTED, APPLIED, TELLING, TOLD];
        let behind = [Propose, Commit, Apply, Tell, Release];
        let of_write = [&[Latches, Snapshot, Workers, Process], &behind[..]].concat();
        assert_eq!(stages(false, &[&looks[..], &then].concat()), of_write);
        let blind = [Moment::LatchesHeld { cid: CID, is_blind: true }];
        let of_blind = [&[Latches, Process], &behind[..]].concat();
        assert_eq!(stages(false, &[&blind[..], &then].concat()), of_blind);
        assert_eq!(
            stages(true, &[&looks[1..], &[TELLING, TOLD]].concat()),
            [Snapshot, Workers, Process, Tell, Release]
        );
    }

    #[test]
    fn a_caller_that_is_told_early_moves_no_stage_and_is_not_told_again_behind_apply() {
        use Stage::*;
        let moments = [PROPOSED, TOLD, COMMITTED, APPLIED];
        assert_eq!(stages(false, &moments), [Latches, Commit, Apply, Release]);
    }
}
