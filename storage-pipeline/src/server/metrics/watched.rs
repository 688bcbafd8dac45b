//! What a command passes, from one moment to the next. Pure: a moment in time is an argument. Hands on how long each stage
//! took.

use std::time::{Duration, Instant};

use crate::observe::Moment;

/// A part of the life of a command or of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// From the admission until its latches are held.
    Latches,
    /// Until its snapshot is taken.
    Snapshot,
    /// Until a worker takes it.
    Workers,
    /// Until the raftstore takes it: the check of one that reads, and the way there.
    Process,
    /// Until raft has it.
    Propose,
    /// Until the batch with its entry is applied.
    Commit,
    /// From there until its caller is about to be told.
    AppliedToCaller,
    /// From there until its latches are released.
    AppliedToReleased,
    /// From the admission until its caller is told.
    Whole,
    /// A write of the raft log, with its sync.
    LogWrite,
    /// A write of a batch to the data.
    Apply,
}

impl Stage {
    /// All of them, in the order in which they stand here.
    pub(super) const ALL: [(Self, &str); 11] = [
        (Self::Latches, "latches"),
        (Self::Snapshot, "snapshot"),
        (Self::Workers, "workers"),
        (Self::Process, "process"),
        (Self::Propose, "propose"),
        (Self::Commit, "commit"),
        (Self::AppliedToCaller, "applied_to_caller"),
        (Self::AppliedToReleased, "applied_to_released"),
        (Self::Whole, "whole"),
        (Self::LogWrite, "log_write"),
        (Self::Apply, "apply"),
    ];
}

/// A command that is watched. Its place is given to another one without a word.
#[derive(Debug, Default)]
pub(super) struct Watched(Option<Times>);

#[derive(Debug)]
struct Times {
    cid: u64,
    admitted: Instant,
    /// When it passed its last moment before it was handed to raft.
    last: Instant,
    /// When it was handed to raft, until the stage that begins there has ended.
    proposed: Option<Instant>,
}

impl Watched {
    /// Passes a moment. `ended` gets each stage that ends with it, and how long that took. Of a command that is not watched
    /// here any more nothing is known.
    pub(super) fn pass(&mut self, moment: Moment, now: Instant, mut ended: impl FnMut(Stage, Duration)) {
        let Some(cid) = moment.cid() else { return };
        if let Moment::Admitted { .. } = moment {
            self.0 = Some(Times { cid, admitted: now, last: now, proposed: None });
            return;
        }
        let Some(times) = self.0.as_mut().filter(|times| times.cid == cid) else { return };
        let stage = match moment {
            Moment::LatchesHeld { .. } => Stage::Latches,
            Moment::SnapshotTaken { .. } => Stage::Snapshot,
            Moment::Processing { .. } => Stage::Workers,
            Moment::Proposing { .. } => Stage::Process,
            Moment::Proposed { .. } => {
                times.proposed = Some(now);
                Stage::Propose
            }
            Moment::TellingCaller { applied_at: Some(at), .. } => {
                times.applied(at, &mut ended);
                return ended(Stage::AppliedToCaller, now.saturating_duration_since(at));
            }
            Moment::Released { applied_at: Some(at), .. } => {
                times.applied(at, &mut ended);
                return ended(Stage::AppliedToReleased, now.saturating_duration_since(at));
            }
            Moment::CallerTold { .. } => {
                return ended(Stage::Whole, now.saturating_duration_since(times.admitted));
            }
            _ => return,
        };
        ended(stage, now.saturating_duration_since(std::mem::replace(&mut times.last, now)));
    }
}

impl Times {
    /// The batch with its entry was applied. Two moments say so: the first of them counts.
    fn applied(&mut self, at: Instant, ended: &mut impl FnMut(Stage, Duration)) {
        if let Some(proposed) = self.proposed.take() {
            ended(Stage::Commit, at.saturating_duration_since(proposed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stages that end where a command passes these moments, one each millisecond, with their milliseconds.
    fn stages(watched: &mut Watched, start: Instant, moments: &[Moment]) -> Vec<(Stage, u128)> {
        let mut stages = Vec::new();
        for (moment, at) in moments.iter().zip(0..) {
            let now = start + Duration::from_millis(at);
            watched.pass(*moment, now, |stage, took| stages.push((stage, took.as_millis())));
        }
        stages
    }

    #[test]
    fn each_stage_of_a_write_is_counted_once_and_lasts_from_one_moment_to_the_next() {
        let (start, cid) = (Instant::now(), 7);
        let applied_at = Some(start + Duration::from_millis(6));
        let moments = [
            Moment::Admitted { cid, region: 1 },
            Moment::LatchesHeld { cid },
            Moment::SnapshotTaken { cid, under_lease: true },
            Moment::Processing { cid },
            Moment::Proposing { cid },
            Moment::Proposed { cid, region: 1, index: 9, term: 1 },
            Moment::Applied { region: 1, index: 9 },
            Moment::TellingCaller { cid, applied_at },
            Moment::CallerTold { cid },
            Moment::Released { cid, applied_at },
        ];
        let of_write = [
            (Stage::Latches, 1),
            (Stage::Snapshot, 1),
            (Stage::Workers, 1),
            (Stage::Process, 1),
            (Stage::Propose, 1),
            (Stage::Commit, 1),
            (Stage::AppliedToCaller, 1),
            (Stage::Whole, 8),
            (Stage::AppliedToReleased, 3),
        ];
        assert_eq!(stages(&mut Watched::default(), start, &moments), of_write);
    }

    #[test]
    fn a_command_whose_place_another_one_has_is_not_mixed_with_it() {
        let start = Instant::now();
        let moments = [
            Moment::Admitted { cid: 1, region: 1 },
            Moment::Admitted { cid: 2, region: 1 },
            Moment::LatchesHeld { cid: 1 },
            Moment::LatchesHeld { cid: 2 },
            Moment::CallerTold { cid: 1 },
        ];
        assert_eq!(stages(&mut Watched::default(), start, &moments), [(Stage::Latches, 2)]);
    }

    #[test]
    fn a_write_that_was_never_applied_has_no_stage_behind_its_proposal() {
        let (start, cid) = (Instant::now(), 1);
        let moments = [
            Moment::Admitted { cid, region: 1 },
            Moment::Proposed { cid, region: 1, index: 9, term: 1 },
            Moment::TellingCaller { cid, applied_at: None },
            Moment::CallerTold { cid },
            Moment::Released { cid, applied_at: None },
        ];
        let of_write = [(Stage::Propose, 1), (Stage::Whole, 3)];
        assert_eq!(stages(&mut Watched::default(), start, &moments), of_write);
    }
}
