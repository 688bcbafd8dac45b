//! What is used of etcd's interface, as generated.

#![allow(missing_docs, unreachable_pub, dead_code, clippy::all)]

tonic::include_proto!("etcdserverpb");
