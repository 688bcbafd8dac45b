//! Nodes that prove to each other who they are, with certificates made here, and strangers who cannot.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use storage_pipeline::{
    CompletionMode,
    server::{Node, NodeConfig, NodeConfigError, NodeError, TlsFiles},
};

use super::nodes::Nodes;
use crate::support::{PATIENCE, wait_for, with_more_time};

/// An authority whose files lie in a directory.
pub(crate) struct Authority<'a> {
    dir: &'a Path,
    name: &'static str,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl<'a> Authority<'a> {
    pub(crate) fn new(dir: &'a Path, name: &'static str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(dir.join(format!("{name}.pem")), issuer.pem()).unwrap();
        Self { dir, name, issuer }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.join(format!("{}{file}", self.name))
    }

    /// The files of somebody at this host.
    pub(crate) fn files(&self, host: &str) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let [certificate_path, key_path] =
            ["certificate", "key"].map(|kind| self.path(&format!("-{host}-{kind}.pem")));
        fs::write(&certificate_path, certificate.pem()).unwrap();
        fs::write(&key_path, key.serialize_pem()).unwrap();
        TlsFiles {
            authority: Some(self.path(".pem")),
            certificate: Some(certificate_path),
            key: Some(key_path),
        }
    }
}

#[test]
fn nodes_with_certificates_of_one_authority_replicate_and_strangers_are_left_outside() {
    with_more_time(Duration::from_millis(20), is_undisturbed_by_strangers);
}

/// Whether nobody had to be elected: a machine with other things to do may bring that about too.
fn is_undisturbed_by_strangers(tick: Duration) -> Option<()> {
    let dir = tempfile::tempdir().unwrap();
    let ours = Authority::new(dir.path(), "ours");
    let nodes = Nodes::start_with(CompletionMode::default(), |config| {
        config.tls = ours.files("127.0.0.1");
        config.store.tick = tick;
    });
    nodes.put(b"before", b"v");
    nodes.agree();

    // A node of the same cluster id that says it is one of the peers, but whose certificate is another authority's, or is for
    // another host, or which has none.
    let theirs = Authority::new(dir.path(), "theirs").files("127.0.0.1");
    let mixed = TlsFiles { authority: ours.files("127.0.0.1").authority, ..theirs.clone() };
    let target = nodes.node(1);
    let before = nodes.storage(1).status();
    for tls in [theirs, mixed, TlsFiles::default()] {
        let stranger = stranger(&dir.path().join("stranger"), &target.address().to_string(), tls);
        let link = || stranger.links().next().unwrap();
        // It asks for votes, and nobody hears it.
        wait_for("what it cannot send", || link().dropped > 3);
        assert_eq!(stranger.storage().status().leader, None);
        drop(stranger);
    }

    // One that says nothing holds nobody up, and one that speaks in plain is not understood.
    let silent = TcpStream::connect(target.address()).unwrap();
    let mut plain = TcpStream::connect(target.address()).unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).unwrap();
    assert!(!answer.starts_with(b"\0\0"), "no frame of HTTP/2: {answer:?}");
    nodes.put(b"after", b"v");
    nodes.agree();
    let is_undisturbed = nodes.storage(1).status().term == before.term;
    drop(silent);
    nodes.finish();
    is_undisturbed.then_some(())
}

#[test]
fn a_node_connects_to_nobody_whose_certificate_is_for_another_host() {
    let dir = tempfile::tempdir().unwrap();
    let ours = Authority::new(dir.path(), "ours");
    let nodes =
        Nodes::start_with(CompletionMode::default(), |config| config.tls = ours.files("elsewhere.example"));
    wait_for("links that cannot be made", || nodes.node(1).links().all(|link| link.dropped > 2));
    assert!(nodes.storages().iter().all(|storage| storage.status().leader.is_none()));
    nodes.finish();
}

#[test]
fn files_that_hold_no_certificate_or_no_key_are_named_or_described_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let good = Authority::new(dir.path(), "ours").files("127.0.0.1");
    let bad = dir.path().join("bad.pem");
    fs::write(&bad, "nothing of the kind").unwrap();
    for tls in [
        TlsFiles { certificate: Some(bad.clone()), ..good.clone() },
        TlsFiles { key: Some(bad.clone()), ..good.clone() },
        TlsFiles { authority: Some(bad.clone()), ..good.clone() },
    ] {
        let error = Node::start(config(&dir.path().join("data"), "127.0.0.1:1", tls)).unwrap_err();
        let NodeError::Config(error @ (NodeConfigError::Tls { .. } | NodeConfigError::Peer { .. })) = error
        else {
            panic!("{error}")
        };
        assert!(error.to_string().len() > 10, "{error}");
        assert!(!dir.path().join("data").exists(), "nothing was made");
    }
}

fn config(dir: &Path, peer: &str, tls: TlsFiles) -> NodeConfig {
    let mut config = NodeConfig {
        cluster_id: 7,
        listen: "127.0.0.1:0".to_owned(),
        peers: [(1, peer.to_owned())].into(),
        tls,
        ..NodeConfig::default()
    };
    config.store.dir = dir.into();
    config.store.replica_id = 2;
    config.store.tick = Duration::from_millis(10);
    config
}

fn stranger(dir: &Path, peer: &str, tls: TlsFiles) -> Node {
    Node::start(config(dir, peer, tls)).unwrap()
}
