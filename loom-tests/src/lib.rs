//! What the models share: a tracked payload, counters that loom does not see, and the way to run a model.
//!
//! Compiles only under `--cfg callback_slot_loom`, so it can never pass without having explored anything.

#[cfg(not(callback_slot_loom))]
compile_error!("the models need RUSTFLAGS=\"--cfg callback_slot_loom\"");

#[cfg(callback_slot_loom)]
mod probe;
#[cfg(callback_slot_loom)]
mod run;
#[cfg(all(callback_slot_loom, storage_pipeline_loom))]
pub mod mail;
#[cfg(all(callback_slot_loom, storage_pipeline_loom))]
pub mod pipeline;

#[cfg(callback_slot_loom)]
pub use self::probe::{Count, OnDrop, Probe};
#[cfg(callback_slot_loom)]
pub use self::run::{bounded_model, model};
