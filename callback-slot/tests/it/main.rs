//! The crate from outside, in one binary. Small loops under Miri, which tries many schedules instead.

mod support;

mod layout;
mod drops;
mod race;
