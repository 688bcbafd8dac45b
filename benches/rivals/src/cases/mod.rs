//! The loops that are timed, each written once for all contenders. A lap runs a number of operations and reports what
//! the callbacks told, so that nothing counts that was not done.

mod relay;
mod single;
mod shared;
mod lose;
mod hand_over;
mod race;

use std::time::Duration;

use crate::work::expected_sum;

pub use self::{
    hand_over::hand_over,
    lose::{lose, lose_by_two, poll},
    race::{race, race_with_handles},
    shared::shared_life,
    single::{life, must_call_drop},
};

/// What a lap came to.
#[derive(Clone, Copy, Debug)]
pub struct Lap {
    /// How long it took.
    pub elapsed: Duration,
    /// The sum of what callbacks told, or of how often the expected answer came.
    pub told: u64,
}

/// Runs that many operations.
pub type Job = fn(u64) -> Lap;

/// Operations of a case between threads come in batches of this size.
pub const BATCH: u64 = 256;

/// A question that the contenders answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// Create, take, call; nothing captured.
    Life0,
    /// Create, take, call; 8 bytes captured.
    Life8,
    /// Create, take, call; 64 bytes captured.
    Life64,
    /// Create, take, call; 256 bytes captured.
    Life256,
    /// Created, armed and dropped uncalled: a fallback answers.
    MustCallDrop,
    /// Complete a completed slot.
    Lose,
    /// Two threads complete the same completed slot.
    LoseByTwo,
    /// Ask an armed slot.
    Poll,
    /// Create on one thread, complete on another.
    HandOver,
    /// Two threads complete the same slots.
    Race,
    /// Create, clone, complete, lose, drop both handles.
    SharedLife,
    /// Two threads complete the same slots, each with a handle of its own, and drop it.
    SharedRace,
}

impl Case {
    /// All cases, in the order of the report.
    pub const ALL: [Case; 12] = [
        Case::Life0,
        Case::Life8,
        Case::Life64,
        Case::Life256,
        Case::MustCallDrop,
        Case::Lose,
        Case::LoseByTwo,
        Case::Poll,
        Case::HandOver,
        Case::Race,
        Case::SharedLife,
        Case::SharedRace,
    ];

    /// The name for filters and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Case::Life0 => "life-0",
            Case::Life8 => "life-8",
            Case::Life64 => "life-64",
            Case::Life256 => "life-256",
            Case::MustCallDrop => "must-call-drop",
            Case::Lose => "lose",
            Case::LoseByTwo => "lose-by-two",
            Case::Poll => "poll",
            Case::HandOver => "hand-over",
            Case::Race => "race",
            Case::SharedLife => "shared-life",
            Case::SharedRace => "shared-race",
        }
    }

    /// What one operation is.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Case::Life0 => "create, take, call on one thread, zero-sized closure",
            Case::Life8 => "create, take, call on one thread, 8 bytes captured",
            Case::Life64 => "create, take, call on one thread, 64 bytes captured",
            Case::Life256 => "create, take, call on one thread, 256 bytes captured",
            Case::MustCallDrop => "create and drop uncalled, the fallback answers; 8 + 8 bytes captured",
            Case::Lose => "complete a completed slot",
            Case::LoseByTwo => "complete a completed slot, two threads at once",
            Case::Poll => "ask an armed slot whether it is armed",
            Case::HandOver => "create on one thread, take and call on another, 8 bytes captured",
            Case::Race => "create, two threads try to take and call, drop; 8 bytes captured",
            Case::SharedLife => "create, clone, complete, lose, drop both handles; 8 bytes captured",
            Case::SharedRace => {
                "create, clone, two threads complete and drop a handle each; 8 bytes captured"
            }
        }
    }

    /// The contender that the others are compared with.
    #[must_use]
    pub const fn baseline(self) -> &'static str {
        match self {
            Case::SharedLife | Case::SharedRace => "Arc of the limit",
            _ => "limit",
        }
    }

    /// Whether a second thread takes part.
    #[must_use]
    pub const fn is_threaded(self) -> bool {
        matches!(self, Case::LoseByTwo | Case::HandOver | Case::Race | Case::SharedRace)
    }

    /// What a lap of that many operations must have told.
    #[must_use]
    pub fn expected(self, operations: u64) -> u64 {
        match self {
            Case::Life0 => expected_sum(operations, 0),
            Case::Life64 => expected_sum(operations, 8),
            Case::Life256 => expected_sum(operations, 32),
            Case::Lose | Case::Poll => operations,
            Case::LoseByTwo => 2 * operations,
            Case::Life8
            | Case::MustCallDrop
            | Case::HandOver
            | Case::Race
            | Case::SharedLife
            | Case::SharedRace => expected_sum(operations, 1),
        }
    }
}
