//! The apply pool: writes committed entries to the data engine and settles the commands they belong to.

pub(crate) mod task;
pub(crate) mod state;
pub(crate) mod membership;
pub(crate) mod delegate;
pub(crate) mod pool;
