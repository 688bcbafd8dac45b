//! A data directory knows whose it is: another node, or a node of another cluster, does not start on it and leaves it as it is.

use std::{path::Path, process::Command};

use storage_pipeline::{
    NodeIdentity, OpenError,
    engine::{Cf, Engine, Modify, WriteBatch, rocks::RocksEngine},
    server::{Node, NodeConfig, NodeError},
};

use crate::support::{config, wait_for};

fn start(dir: &Path, cluster_id: u64, node_id: u64) -> Result<Node, NodeError> {
    let listen = "127.0.0.1:0".to_owned();
    let store = config(Default::default(), dir);
    let mut config = NodeConfig { cluster_id, listen, store, ..NodeConfig::default() };
    config.store.replica_id = node_id;
    config.store.voters = vec![node_id];
    Node::start(config)
}

/// Why a start is refused: whose the directory is, and who wanted it.
fn refusal(dir: &Path, cluster_id: u64, node_id: u64) -> (NodeIdentity, NodeIdentity) {
    let Err(NodeError::Open(why)) = start(dir, cluster_id, node_id) else { panic!("it starts") };
    let words = why.to_string();
    let OpenError::OtherNode { path, found, wanted } = why else { panic!("{words}") };
    assert_eq!(
        (path.as_path(), words),
        (dir, format!("{}: it belongs to {found}, not to {wanted}", dir.display()))
    );
    (found, wanted)
}

fn identity(cluster_id: Option<u64>, node_id: u64) -> NodeIdentity {
    NodeIdentity { cluster_id, node_id }
}

/// Takes away what a start writes since directories name their cluster.
fn forget_cluster(dir: &Path) {
    let engine = RocksEngine::open(&dir.join("data")).unwrap();
    let mut batch = WriteBatch::default();
    batch.push(Modify::Delete(Cf::Meta, b"cluster".to_vec()));
    engine.write(&batch).and_then(|()| engine.sync()).unwrap();
}

#[test]
fn a_directory_of_another_node_or_cluster_is_refused_by_both_their_names_and_keeps_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path(), 7, 1).unwrap();
    wait_for("a write", || node.storage().raw_put(b"k", b"v").is_applied());
    node.stop();
    assert_eq!(refusal(dir.path(), 8, 1), (identity(Some(7), 1), identity(Some(8), 1)));
    assert_eq!(refusal(dir.path(), 7, 2), (identity(Some(7), 1), identity(Some(7), 2)));

    let check =
        Command::new(env!("CARGO_BIN_EXE_storage-pipeline")).arg("check").arg(dir.path()).output().unwrap();
    let words = String::from_utf8(check.stdout).unwrap();
    assert!(check.status.success() && words.starts_with("node 1 of cluster 7\n"), "{words}");

    let node = start(dir.path(), 7, 1).unwrap();
    wait_for("the value", || {
        node.storage().raw_get(b"k").into_result().is_ok_and(|got| got.as_deref() == Some(b"v"))
    });
    node.stop();
}

#[test]
fn a_directory_that_names_no_cluster_becomes_that_of_its_node_and_of_no_other() {
    let dir = tempfile::tempdir().unwrap();
    start(dir.path(), 7, 1).unwrap().stop();
    forget_cluster(dir.path());
    assert_eq!(refusal(dir.path(), 7, 2), (identity(None, 1), identity(Some(7), 2)));
    start(dir.path(), 9, 1).unwrap().stop();
    assert_eq!(refusal(dir.path(), 7, 1), (identity(Some(9), 1), identity(Some(7), 1)));
}
