//! Nodes: processes that are started, asked to stop and misused, groups of them over sockets whose links are cut, and their clients.

mod history;
mod link;
mod nodes;
mod load;
mod client;
mod status;
#[cfg(feature = "client")]
mod operations;
mod network;
mod process;
mod tls;
mod victim;
mod processes;
mod bank;
mod kills;
mod one_way;
mod remote;
mod client_kills;
mod no_room;
mod check;
mod identity;
