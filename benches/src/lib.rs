//! What the demo and the measurements share: the workload, one timed round, its figures, and how figures are compared.

pub mod allocations;
pub mod cpu;
pub mod figures;
pub mod in_memory;
pub mod round;
pub mod rows;
pub mod stats;
pub mod table;
