//! Integration tests of the whole pipeline. Every test runs in all five completion modes and ends in quiescence.

mod regions;
mod regions_in_groups;
mod support;
mod tidy;
mod loom_table;
mod basics;
mod bad_input;
mod completion;
mod callbacks;
mod slow_callbacks;
mod spans;
mod faults;
#[cfg(feature = "failpoints")]
mod fail_points;
mod shutdown;
mod stopping;
mod durability;
mod kills;
mod full_disk;
mod power_loss;
mod group;
mod replication;
mod snapshots;
mod leader_loss;
mod members;
// Nodes are started by one feature, and asked by another: tests of either use both.
#[cfg(all(feature = "client", feature = "server"))]
mod server;
