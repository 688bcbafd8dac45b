//! The pipeline's protocol, as generated, and the few requests that are made here.

#![allow(missing_docs, unreachable_pub, clippy::all)]

tonic::include_proto!("storage_pipeline.store.v1");

/// The id of every cluster here.
pub const CLUSTER: u64 = 1;

pub fn header() -> Option<Header> {
    Some(Header { protocol_version: 1, cluster_id: CLUSTER, timeout_ms: 10_000 })
}

pub fn raw_put(key: Vec<u8>, value: Vec<u8>) -> ExecuteRequest {
    let command = command::Command::RawPut(RawPut { key, value });
    ExecuteRequest {
        header: header(),
        command: Some(Command { command: Some(command) }),
        ..ExecuteRequest::default()
    }
}
