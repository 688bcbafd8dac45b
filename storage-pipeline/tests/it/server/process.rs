//! The binary: what it prints, when and how it ends, and what it refuses.

use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::support::{PATIENCE, wait_for};

const SERVER: &str = env!("CARGO_BIN_EXE_storage-pipeline");

/// The binary with these arguments, which has said where it listens.
pub(super) struct Process {
    child: Child,
    pub(super) address: SocketAddr,
    log: Option<Log>,
}

/// What it has logged so far, and the thread that reads it to its end.
struct Log {
    text: Arc<Mutex<String>>,
    reader: thread::JoinHandle<()>,
}

impl Log {
    fn of(stderr: ChildStderr) -> Self {
        let text = Arc::<Mutex<String>>::default();
        let own = Arc::clone(&text);
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                *own.lock().unwrap() += &(line.unwrap() + "\n");
            }
        });
        Self { text, reader }
    }

    fn wait_for(&self, words: &str) {
        wait_for(words, || self.text.lock().unwrap().contains(words));
    }

    fn whole(self) -> String {
        self.reader.join().unwrap();
        self.text.lock().unwrap().clone()
    }
}

impl Process {
    fn start(config: &Path, arguments: &[&str]) -> Self {
        Self::start_in(config, arguments, [])
    }

    /// As above, with more in its environment.
    pub(super) fn start_in<const N: usize>(
        config: &Path,
        arguments: &[&str],
        environment: [(&str, PathBuf); N],
    ) -> Self {
        let mut command = serve(config, arguments);
        command.envs(environment).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Log::of(child.stderr.take().unwrap());
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            // Nobody waits for it any more where the test has failed.
            let _ = sender.send(line);
        });
        let line = receiver.recv_timeout(PATIENCE).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").and_then(|address| address.parse().ok());
        let Some(address) = address else { panic!("{line:?}; {}", log.whole()) };
        Self { child, address, log: Some(log) }
    }

    /// Sends a signal and waits for the end.
    pub(super) fn end(self, signal: &str) -> (ExitStatus, String) {
        send(signal, self.child.id());
        self.wait()
    }

    /// Waits for the end: its status, and what it logged.
    pub(super) fn wait(mut self) -> (ExitStatus, String) {
        let status = wait(&mut self.child);
        (status, self.log.take().expect("it is read once").whole())
    }
}

impl Drop for Process {
    /// Where the test has failed nobody has ended it.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(config: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(SERVER);
    command.arg("serve").arg("--config").arg(config).args(arguments);
    command
}

pub(crate) fn send(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

fn wait(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("it does not end");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// What a start comes to that must fail: its status, and what it says.
pub(super) fn refusal<const N: usize>(
    config: &Path,
    arguments: &[&str],
    environment: [(&str, PathBuf); N],
) -> (i32, String) {
    let mut command = serve(config, arguments);
    command.envs(environment).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let status = wait(&mut child);
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    (status.code().expect("no signal"), words)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// The first of so many free ports in a row, below those that the system gives to whoever asks for any.
pub(super) fn free_ports(count: u16) -> u16 {
    let first = 10_000 + (std::process::id() % 2_000) as u16 * 10;
    (first..32_000).step_by(10).find(|port| (0..count).all(|n| is_free(port + n))).unwrap()
}

/// The file of a node whose peers have these addresses.
pub(crate) fn file(dir: &Path, node: u64, cluster: u64, peers: &[(u64, String)]) -> PathBuf {
    let data = dir.join(format!("node-{node}"));
    let peers: String = peers.iter().map(|(id, address)| format!("{id} = \"{address}\"\n")).collect();
    let text = format!(
        "cluster_id = {cluster}\nnode_id = {node}\ndir = \"{}\"\nlisten = \"127.0.0.1:0\"\n[peers]\n{peers}",
        data.display()
    );
    let path = dir.join(format!("node-{node}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_node_ends_with_0_when_it_is_asked_to_and_starts_again_on_what_it_left() {
    let dir = tempfile::tempdir().unwrap();
    let config = file(dir.path(), 1, 7, &[]);
    for signal in ["-TERM", "-INT", "-KILL", "-TERM"] {
        let node = Process::start(&config, &["--set", "tick_ms=10"]);
        assert_ne!(node.address.port(), 0);
        let (status, log) = node.end(signal);
        assert_eq!(status.code(), (signal != "-KILL").then_some(0), "{log}");
    }
}

#[test]
fn a_node_takes_over_the_peers_of_its_file_when_it_is_told_to_and_keeps_them_where_the_file_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let nobody = |id| (id, "127.0.0.1:1".to_owned());
    let config = file(dir.path(), 1, 7, &[nobody(2)]);
    let node = Process::start(&config, &[]);
    let tell = || send("-HUP", node.child.id());
    let log = node.log.as_ref().unwrap();
    log.wait_for("peer=2");
    assert!(!log.text.lock().unwrap().contains("peer=3"));
    file(dir.path(), 1, 7, &[nobody(2), nobody(3)]);
    tell();
    log.wait_for("the peers are those of the configuration as it is now");
    log.wait_for("peer=3");
    for (wrong, words) in [("peers = 7", "peers"), ("no TOML", "not TOML")] {
        std::fs::write(&config, wrong).unwrap();
        log.text.lock().unwrap().clear();
        tell();
        log.wait_for("the peers stay");
        assert!(log.text.lock().unwrap().contains(words), "{wrong}");
    }
    let (status, log) = node.end("-TERM");
    assert!(status.success(), "{log}");
}

#[test]
fn what_is_wrong_with_a_start_is_said_and_told_apart_by_the_status() {
    let dir = tempfile::tempdir().unwrap();
    let config = file(dir.path(), 1, 7, &[]);
    let node = Process::start(&config, &[]);
    let listen = node.address.to_string();
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--set", "tick=1"], 2, "no field tick;"),
        (&["--set", "tick_ms=0"], 2, "tick"),
        (&["--set", "tick_ms"], 2, "tick_ms"),
        (&["--completion-mode", "Nobody"], 2, "completion_mode"),
        (&["--config", "/nowhere"], 2, "--config"),
        (&["--listen", &listen], 1, "cannot listen on"),
        (&[], 1, "node-1"),
    ];
    for (arguments, code, words) in cases {
        let (status, said) = refusal(&config, arguments, []);
        assert_eq!(status, code, "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let (status, said) = refusal(&dir.path().join("none.toml"), &[], []);
    assert!(status == 2 && said.contains("none.toml"), "{status}: {said}");
    // It belongs to its directory who it is.
    let (status, _) = node.end("-TERM");
    assert!(status.success());
    let (status, said) = refusal(&config, &["--node-id", "2"], []);
    assert!(status == 1 && said.contains("node-1"), "{status}: {said}");
}

#[test]
fn nodes_of_two_clusters_refuse_each_other_and_say_so_on_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let one = Process::start(&file(dir.path(), 1, 7, &[(2, "127.0.0.1:1".to_owned())]), &[]);
    let peers = [(1, one.address.to_string())];
    let two = Process::start(&file(dir.path(), 2, 8, &peers), &[]);
    for node in [two, one] {
        node.log.as_ref().unwrap().wait_for("this is cluster 7, not 8");
        let (status, log) = node.end("-TERM");
        assert!(status.success(), "{status}: {log}");
    }
}

#[test]
fn the_script_starts_three_nodes_that_find_each_other_and_stops_them() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/cluster.sh");
    let port = free_ports(3);
    let dir = tempfile::tempdir().unwrap();
    let (kept, log) = (dir.path().join("cluster"), dir.path().join("log"));
    let mut cluster = Command::new(script)
        .env("PORT", port.to_string())
        .env("DIR", &kept)
        .env("BIN", SERVER)
        .env("LOG", "info")
        .env("ARGS", "--set tick_ms=10")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    let log = || std::fs::read_to_string(&log).unwrap();
    // Each of the three has a link to each of the two others.
    while log().matches(" connected to another node").count() < 6 {
        assert!(Instant::now() < until, "{}", log());
        thread::sleep(Duration::from_millis(10));
    }
    send("-TERM", cluster.id());
    assert!(wait(&mut cluster).success(), "{}", log());
    assert!((0..3).all(|n| is_free(port + n)), "they are gone");
    assert!(kept.join("node-3").exists(), "what was named is kept");
}

/// Runs a command of a client against a node that may not lead yet.
#[cfg(feature = "client")]
fn put(address: SocketAddr) {
    use storage_pipeline::{Client, ClientConfig};
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = Client::connect(ClientConfig::new(7, [address.to_string()])).await.unwrap();
        client.raw_put(b"key", b"v").await.into_result().unwrap();
    });
}

#[cfg(feature = "client")]
#[test]
fn a_node_logs_its_life_and_where_it_is_asked_to_each_command_by_its_stages() {
    let dir = tempfile::tempdir().unwrap();
    let config = file(dir.path(), 1, 7, &[]);
    for (level, traces) in [("info", false), ("info,storage_pipeline::command=debug", true)] {
        let node = Process::start(&config, &["--set", "tick_ms=10", "--log", level]);
        put(node.address);
        let (_, log) = node.end("-TERM");
        let life = ["the node serves", "a replica leads", "the node takes nothing new", "the node ends"];
        let places: Vec<_> = life.iter().map(|words| log.find(words)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {log}");
        let put = log.lines().filter(|line| line.contains("RawPut") && line.contains("close"));
        let of_put: Vec<_> = put.collect();
        assert_eq!(of_put.len(), if traces { 8 } else { 0 }, "seven stages and the whole: {log}");
        for (line, stage) in
            of_put.iter().zip(["latches", "process", "propose", "commit", "apply", "tell", "release"])
        {
            assert!(line.contains(&format!("{stage}:")) && line.contains("region=1"), "{line}");
        }
        assert!(of_put.last().is_none_or(|line| line.contains("outcome=\"applied\"")), "{log}");
    }
    let refused =
        Command::new(SERVER).args(["--log", "storage_pipeline=loud", "check", "/nowhere"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
