//! Servers as child processes on loopback, in directories of their own. They end with their handles.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
};

use benches::round::Failure;

use crate::{
    store::CLUSTER,
    usage::{self, Usage},
};

/// A process that is killed when nobody needs it any more.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Servers, and where clients reach them.
pub(crate) struct Servers {
    /// `host:port` of each.
    pub(crate) addresses: Vec<String>,
    running: Vec<Running>,
}

impl Servers {
    /// What they have used of the machine.
    pub(crate) fn usage(&self) -> Result<Usage, Failure> {
        usage::of(self.running.iter().map(|Running(child)| child.id()))
    }
}

fn start(program: &Path, arguments: &[String], log: &Path) -> Result<Running, Failure> {
    let log = fs::File::create(log)?;
    let mut command = Command::new(program);
    let command = command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(Running(child))
}

/// Ports that nobody listens on at this moment.
pub(crate) fn free_ports(count: u64) -> Result<Vec<u16>, Failure> {
    let listeners: Vec<_> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    Ok(listeners
        .iter()
        .map(|listener| listener.local_addr().map(|at| at.port()))
        .collect::<Result<_, _>>()?)
}

/// The server without a store.
pub(crate) fn ceiling(dir: &Path) -> Result<Servers, Failure> {
    let address = format!("127.0.0.1:{}", free_ports(1)?[0]);
    let arguments = ["ceiling".to_owned(), address.clone()];
    let running = start(&std::env::current_exe()?, &arguments, &dir.join("ceiling.log"))?;
    Ok(Servers { addresses: vec![address], running: vec![running] })
}

/// Nodes of the pipeline, with what is their default.
pub(crate) fn pipeline(program: &Path, nodes: u64, dir: &Path) -> Result<Servers, Failure> {
    let ports = free_ports(nodes)?;
    let addresses: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let file = dir.join("pipeline.toml");
    let peers: String =
        addresses.iter().zip(1..).map(|(address, id)| format!("{id} = \"{address}\"\n")).collect();
    fs::write(&file, format!("cluster_id = {CLUSTER}\n[peers]\n{peers}"))?;
    let mut running = Vec::new();
    for (address, id) in addresses.iter().zip(1..) {
        let data = dir.join(format!("pipeline-{id}"));
        let words = [
            "serve",
            "--config",
            &file.display().to_string(),
            "--node-id",
            &id.to_string(),
            "--listen",
            address,
            "--dir",
            &data.display().to_string(),
        ];
        running.push(start(program, &words.map(str::to_owned), &dir.join(format!("pipeline-{id}.log")))?);
    }
    Ok(Servers { addresses, running })
}

/// Nodes of etcd, with what is their default.
pub(crate) fn etcd(nodes: u64, dir: &Path) -> Result<Servers, Failure> {
    let ports = free_ports(2 * nodes)?;
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let (own, others) = ports.split_at(nodes as usize);
    let cluster: Vec<_> =
        others.iter().zip(1..).map(|(port, id)| format!("node-{id}={}", url(*port))).collect();
    let mut running = Vec::new();
    for ((client, peer), id) in own.iter().zip(others).zip(1..) {
        let words = [
            ("--name", format!("node-{id}")),
            ("--data-dir", dir.join(format!("etcd-{id}")).display().to_string()),
            ("--listen-client-urls", url(*client)),
            ("--advertise-client-urls", url(*client)),
            ("--listen-peer-urls", url(*peer)),
            ("--initial-advertise-peer-urls", url(*peer)),
            ("--initial-cluster", cluster.join(",")),
            ("--log-level", "error".to_owned()),
        ];
        let words: Vec<_> = words.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        running.push(start(Path::new("etcd"), &words, &dir.join(format!("etcd-{id}.log")))?);
    }
    Ok(Servers { addresses: own.iter().map(|port| format!("127.0.0.1:{port}")).collect(), running })
}

/// What the installed etcd says that it is, if there is one.
pub(crate) fn etcd_version() -> Option<String> {
    let output = Command::new("etcd").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(|line| line.trim_start_matches("etcd Version: ").to_owned())
}
