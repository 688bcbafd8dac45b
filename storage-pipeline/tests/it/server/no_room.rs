//! A disk that is full under one node of three, and later has room again: callers are told, the node ends and says why, the others go
//! on, and nothing that was acknowledged is lost.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use storage_pipeline::{Cause, Client, ClientConfig, CompletionMode, Error, Outcome};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{
    bank::{Bank, Teller},
    load::{Load, StopAtDrop},
    nodes::NODES,
    process::{Process, file, free_ports, refusal},
    processes::Wires,
    remote::Remote,
    status::get,
    victim::Victim,
};
use crate::support::{PATIENCE, wait_for};

/// What the system says of a disk without room, in RocksDB's words too.
const FULL: &str = "No space left on device";

/// A disk for some nodes, each of which can be without room.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        let disk = Self(tempfile::tempdir().unwrap());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/server/full_disk.c");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o"])
            .args([&disk.library(), &source]);
        assert!(cc.status().expect("a C compiler, which the set-up asks for").success());
        disk
    }

    fn library(&self) -> PathBuf {
        self.0.path().join("full_disk.so")
    }

    fn flag(&self, node: u64) -> PathBuf {
        self.0.path().join(format!("node-{node}-is-full"))
    }

    /// What a node's process is started with.
    fn environment(&self, node: u64) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library()), ("FULL_DISK_FLAG", self.flag(node))]
    }

    fn fill(&self, node: u64) {
        fs::write(self.flag(node), "").unwrap();
    }

    fn empty(&self, node: u64) {
        fs::remove_file(self.flag(node)).unwrap();
    }
}

#[test]
fn a_node_whose_disk_is_full_ends_and_says_why_and_the_others_go_on_until_it_comes_back() {
    let (disk, wires) = (Disk::new(), Wires::new(CompletionMode::default()));
    let start = |id: u64| {
        let node = Process::start_in(&wires.file(id), &[], disk.environment(id));
        wires.lead_to(id, node.address);
        node
    };
    let mut nodes: Vec<_> = NODES.map(|id| Some(start(id))).into();
    let runtime = Runtime::new().unwrap();
    let remote = Remote::connect(&runtime, &wires);
    let (load, bank) = (Load::on(vec![remote.clone()]), Bank::with(vec![remote.clone()]));
    thread::scope(|scope| {
        let stop = StopAtDrop(bank.stop());
        let clients: Vec<_> = (0..2).map(|_| scope.spawn(|| bank.client())).collect();
        load.run(3, || {
            // One of them leads.
            for (id, node) in NODES.into_iter().zip(&mut nodes) {
                load.wait_for_commands("commands of all");
                disk.fill(id);
                let (status, log) = node.take().expect("it runs").wait();
                assert_eq!(status.code(), Some(1), "{log}");
                assert!(log.contains("the store stopped after a fault") && log.contains(FULL), "{log}");
                load.wait_for_commands("commands without it");
                let (status, said) = refusal(&wires.file(id), &[], disk.environment(id));
                assert!(status == 1 && said.contains(FULL) && said.contains("node-"), "{status}: {said}");
                disk.empty(id);
                *node = Some(start(id));
            }
            load.wait_for_commands("commands of all");
            bank.wait_for_business();
        });
        drop(stop);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    assert_eq!(load.refused(), 0, "a client goes on with the others");
    wait_for("the total", || remote.total().is_some());
    bank.close(remote.total().unwrap(), |number| remote.record(number));
    assert!(load.history.check() > 100);
    nodes.into_iter().flatten().for_each(|node| assert!(node.end("-TERM").0.success()));
}

#[test]
fn whoever_asks_a_node_whose_disk_is_full_is_told_so_and_what_was_acknowledged_is_there_later() {
    let (disk, dir) = (Disk::new(), tempfile::tempdir().unwrap());
    let config = file(dir.path(), 1, 7, &[]);
    let status = format!("127.0.0.1:{}", free_ports(1));
    let text =
        format!("status_listen = \"{status}\"\ntick_ms = 10\n") + &fs::read_to_string(&config).unwrap();
    fs::write(&config, text).unwrap();
    let runtime = Runtime::new().unwrap();
    let connect = |address: String, timeout| {
        let mut config = ClientConfig::new(7, [address]);
        config.timeout = timeout;
        runtime.block_on(Client::connect(config)).unwrap()
    };
    // A node that stays there after its store has failed.
    let (node, address) = Victim::start_in(&config, disk.environment(1));
    let client = connect(address.to_string(), PATIENCE);
    runtime.block_on(client.raw_put(b"kept", b"v")).into_result().unwrap();
    disk.fill(1);
    let first = runtime.block_on(client.raw_put(b"k", b"v"));
    assert!(
        matches!(&first, Outcome::Indeterminate(Cause::Poisoned(why)) if why.contains(FULL)),
        "{first:?}"
    );
    // It is asked again until the client's time is up: another node might do it.
    let impatient = connect(address.to_string(), Duration::from_secs(1));
    let later = runtime.block_on(impatient.raw_put(b"k", b"v"));
    assert!(matches!(&later, Outcome::NotExecuted(Error::Poisoned(why)) if why.contains(FULL)), "{later:?}");
    let status = status.parse().unwrap();
    assert!(get(status, "/status").1.contains(FULL));
    assert!(get(status, "/metrics").1.lines().any(|line| line == "storage_pipeline_poisoned 1"));
    node.kill();
    disk.empty(1);
    let (node, address) = Victim::start_in(&config, disk.environment(1));
    let client = connect(address.to_string(), PATIENCE);
    let read = |key: &[u8]| runtime.block_on(client.raw_get(key)).into_result().unwrap();
    assert_eq!(read(b"kept").as_deref(), Some(&b"v"[..]));
    // Nobody was promised anything about this one.
    assert!(read(b"k").is_none_or(|value| value == b"v"));
    runtime.block_on(client.raw_put(b"k", b"w")).into_result().unwrap();
    assert_eq!(read(b"k").as_deref(), Some(&b"w"[..]));
    node.kill();
}
