//! Measures one-shot callback slots side by side: the same work, in one process, in interleaved rounds.
//!
//! [`work`] is what each callback does. [`contender`] says what a contender can be asked for, [`limit`] and [`rivals`]
//! are the contenders. [`cases`] are the loops, written once for all of them, and [`roster`] lists which contender runs
//! in which case. [`measure`] runs laps of them in rounds, [`stats`] compares the laps of a round, and [`report`] writes
//! tables and JSON beside a description of the [`machine`].

pub mod work;
pub mod contender;
pub mod limit;
pub mod rivals;
pub mod cases;
pub mod roster;
pub mod measure;
pub mod stats;
pub mod machine;
pub mod report;
