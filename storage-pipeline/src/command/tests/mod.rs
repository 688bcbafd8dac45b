//! The rules of each command, on a store without a pipeline.

mod validation;
mod write_path;
mod rollback;
mod status;
mod reads;
mod gc;
mod raw;
mod model;
