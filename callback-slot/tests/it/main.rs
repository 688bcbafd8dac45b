//! The crate from outside, in one binary. Under Miri loops are short: it tries many schedules by its seeds instead.

#![cfg(not(callback_slot_loom))]
#![cfg_attr(callback_slot_plain_runner, feature(custom_test_frameworks, test))]
#![cfg_attr(callback_slot_plain_runner, test_runner(crate::runner::run))]

#[cfg(callback_slot_plain_runner)]
mod runner;
mod support;

mod layout;
mod text;
mod drops;
mod sweep;
mod matrix;
mod race;
mod stress;
mod reentry;
mod panics;
mod attacks;
mod identity;
mod in_place;
mod option_cell;
#[cfg(not(miri))]
mod memory;
#[cfg(not(miri))]
mod api;
#[cfg(not(miri))]
mod claims;
#[cfg(any(feature = "wait", feature = "future"))]
mod reply;
#[cfg(feature = "future")]
mod reply_attacks;
#[cfg(all(feature = "wait", feature = "future"))]
mod reply_matrix;
