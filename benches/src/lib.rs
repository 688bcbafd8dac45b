//! What the demo and the measurements share: the workloads, one timed round, its figures, how figures are compared and shown.

pub mod allocations;
pub mod bare;
pub mod closed_loop;
pub mod cpu;
pub mod figures;
pub mod growth;
pub mod in_memory;
pub mod instructions;
pub mod machine;
pub mod plan;
pub mod program;
pub mod record;
pub mod report;
pub mod round;
pub mod rows;
pub mod stages;
pub mod stats;
pub mod table;
pub mod watch;
pub mod window;
pub mod workload;
