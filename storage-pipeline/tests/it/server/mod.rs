//! Nodes: processes that are started, asked to stop and misused, and groups of them over sockets whose links are cut.

mod history;
mod link;
mod nodes;
mod load;
mod network;
mod process;
mod tls;
mod victim;
mod kills;
