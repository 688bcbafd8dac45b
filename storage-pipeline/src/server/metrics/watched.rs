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
    /// Until its entry is committed.
    Commit,
    /// Until the batch with its entry is applied.
    CommittedToApplied,
    /// From there until its caller is about to be told.
    AppliedToCaller,
    /// From there until its latches are released.
    AppliedToReleased,
    /// From the admission until its caller is told.
    Whole,
    /// A write of the raft log that is not synced.
    LogWrite,
    /// A write of the raft log with its sync.
    LogSync,
    /// A write of a batch to the data.
    Apply,
}

impl Stage {
    /// All of them, in the order in which they stand here.
    pub(super) const ALL: [(Self, &str); 13] = [
        (Self::Latches, "latches"),
        (Self::Snapshot, "snapshot"),
        (Self::Workers, "workers"),
        (Self::Process, "process"),
        (Self::Propose, "propose"),
        (Self::Commit, "commit"),
        (Self::CommittedToApplied, "committed_to_applied"),
        (Self::AppliedToCaller, "applied_to_caller"),
        (Self::AppliedToReleased, "applied_to_released"),
        (Self::Whole, "whole"),
        (Self::LogWrite, "log_write"),
        (Self::LogSync, "log_sync"),
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
    /// When it passed its last moment up to the apply of its entry.
    last: Instant,
}

impl Watched {
    /// A command passes a moment that is its own or of its entry. Yields the stage that ends with it, and how long that took. Of a
    /// command that is not watched here any more nothing is known.
    pub(super) fn pass(&mut self, cid: u64, moment: Moment, now: Instant) -> Option<(Stage, Duration)> {
        if let Moment::Admitted { .. } = moment {
            self.0 = Some(Times { cid, admitted: now, last: now });
            return None;
        }
        let times = self.0.as_mut().filter(|times| times.cid == cid)?;
        let since = |then: Instant| now.saturating_duration_since(then);
        let stage = match moment {
            Moment::LatchesHeld { .. } => Stage::Latches,
            Moment::SnapshotTaken { .. } => Stage::Snapshot,
            Moment::Processing { .. } => Stage::Workers,
            Moment::Proposing { .. } => Stage::Process,
            Moment::Proposed { .. } => Stage::Propose,
            Moment::Committed { .. } => Stage::Commit,
            Moment::Applied { .. } => Stage::CommittedToApplied,
            Moment::TellingCaller { applied_at: Some(at), .. } => {
                return Some((Stage::AppliedToCaller, since(at)));
            }
            Moment::Released { applied_at: Some(at), .. } => {
                return Some((Stage::AppliedToReleased, since(at)));
            }
            Moment::CallerTold { .. } => return Some((Stage::Whole, since(times.admitted))),
            _ => return None,
        };
        Some((stage, since(std::mem::replace(&mut times.last, now))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::OutcomeKind;

    fn admitted(cid: u64) -> Moment {
        Moment::Admitted { cid, region: 1, kind: "Commit", is_read: false }
    }

    fn told(cid: u64) -> Moment {
        Moment::CallerTold { cid, outcome: OutcomeKind::Applied }
    }

    /// The stages that end where a command passes these moments, one each millisecond, with their milliseconds.
    fn stages(watched: &mut Watched, start: Instant, moments: &[Moment]) -> Vec<(Stage, u128)> {
        let mut stages = Vec::new();
        for (moment, at) in moments.iter().zip(0..) {
            let now = start + Duration::from_millis(at);
            // Every command of these tests has its entry at its own number.
            let cid = moment.cid().unwrap_or_else(|| match *moment {
                Moment::Committed { index, .. } | Moment::Applied { index, .. } => index,
                _ => panic!("{moment:?} is of no command"),
            });
            stages.extend(watched.pass(cid, *moment, now).map(|(stage, took)| (stage, took.as_millis())));
        }
        stages
    }

    #[test]
    fn each_stage_of_a_write_is_counted_once_and_lasts_from_one_moment_to_the_next() {
        let (start, cid) = (Instant::now(), 7);
        let applied_at = Some(start + Duration::from_millis(7));
        let moments = [
            admitted(cid),
            Moment::LatchesHeld { cid, is_blind: false },
            Moment::SnapshotTaken { cid, under_lease: true },
            Moment::Processing { cid },
            Moment::Proposing { cid },
            Moment::Proposed { cid, region: 1, index: cid, term: 1 },
            Moment::Committed { region: 1, index: cid },
            Moment::Applied { region: 1, index: cid },
            Moment::TellingCaller { cid, applied_at },
            told(cid),
            Moment::Released { cid, applied_at },
        ];
        let of_write = [
            (Stage::Latches, 1),
            (Stage::Snapshot, 1),
            (Stage::Workers, 1),
            (Stage::Process, 1),
            (Stage::Propose, 1),
            (Stage::Commit, 1),
            (Stage::CommittedToApplied, 1),
            (Stage::AppliedToCaller, 1),
            (Stage::Whole, 9),
            (Stage::AppliedToReleased, 3),
        ];
        assert_eq!(stages(&mut Watched::default(), start, &moments), of_write);
    }

    #[test]
    fn a_command_whose_place_another_one_has_is_not_mixed_with_it() {
        let start = Instant::now();
        let moments = [
            admitted(1),
            admitted(2),
            Moment::LatchesHeld { cid: 1, is_blind: false },
            Moment::LatchesHeld { cid: 2, is_blind: false },
            told(1),
        ];
        assert_eq!(stages(&mut Watched::default(), start, &moments), [(Stage::Latches, 2)]);
    }

    #[test]
    fn a_write_that_was_never_applied_has_no_stage_behind_its_proposal() {
        let (start, cid) = (Instant::now(), 1);
        let moments = [
            admitted(cid),
            Moment::Proposed { cid, region: 1, index: 9, term: 1 },
            Moment::TellingCaller { cid, applied_at: None },
            told(cid),
            Moment::Released { cid, applied_at: None },
        ];
        let of_write = [(Stage::Propose, 1), (Stage::Whole, 3)];
        assert_eq!(stages(&mut Watched::default(), start, &moments), of_write);
    }
}
