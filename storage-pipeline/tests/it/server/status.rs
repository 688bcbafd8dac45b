//! What a node that runs says of itself over HTTP.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use serde_json::Value;
use storage_pipeline::{
    Client, ClientConfig, CompletionMode,
    command::{RawGet, RawPut},
    observe::Observe,
    raftstore::status::Role,
    server::{Node, NodeConfig},
};
use tokio::runtime::Runtime;

use super::nodes::{NODES, Nodes};
use crate::support::{Answer, PATIENCE, Recorder, checked, config, wait_for, with_more_time};

/// The head and the body of an answer.
pub(super) fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// The values of all series of all nodes, added up.
fn metrics(nodes: &Nodes) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for id in NODES {
        let (head, text) = get(nodes.node(id).status_address().unwrap(), "/metrics");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("openmetrics-text"), "{head}");
        assert!(text.ends_with("# EOF\n"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            *sums.entry(name.to_owned()).or_default() += value.parse::<f64>().unwrap();
        }
    }
    sums
}

fn stage(metrics: &BTreeMap<String, f64>, stage: &str, what: &str) -> f64 {
    metrics[&format!("storage_pipeline_stage_seconds_{what}{{stage=\"{stage}\"}}")]
}

#[test]
fn a_node_that_runs_tells_how_long_each_stage_takes_and_how_requests_end_in_every_mode() {
    for mode in CompletionMode::ALL {
        let nodes = Nodes::start_with(mode, |config| config.status_listen = Some("127.0.0.1:0".to_owned()));
        nodes.put(b"first", b"v");
        let runtime = Runtime::new().unwrap();
        let addresses = NODES.map(|id| nodes.node(id).address().to_string());
        let client = runtime.block_on(Client::connect(ClientConfig::new(7, addresses))).unwrap();
        let before = metrics(&nodes);
        runtime.block_on(async {
            for _ in 0..10 {
                assert!(client.execute(checked("key")).await.is_applied());
                assert!(client.raw_get(b"key").await.is_applied());
            }
            assert!(client.execute(RawGet { key: Vec::new() }).await.is_not_executed());
        });
        nodes.agree();
        // Callers and nodes hear of a command before its latches are released.
        let is_over = |metrics: &BTreeMap<String, f64>| {
            let released = stage(metrics, "applied_to_released", "count")
                - stage(&before, "applied_to_released", "count");
            let in_flight = metrics["storage_pipeline_in_flight{what=\"commands\"}"];
            let leaders = metrics["storage_pipeline_leads{region=\"1\"}"];
            released >= 10.0 && in_flight == 0.0 && leaders == 1.0
        };
        wait_for("the last release, and one leader of three", || is_over(&metrics(&nodes)));
        let after = metrics(&nodes);
        let more = |name: &str| {
            let of = |metrics: &BTreeMap<String, f64>| metrics.get(name).copied().unwrap_or(0.0);
            of(&after) - of(&before)
        };
        assert_eq!(more("storage_pipeline_requests_total{outcome=\"applied\"}"), 20.0, "{mode}");
        // Of a command that is invalid, and of those that a follower refused until the client found its leader.
        assert!(more("storage_pipeline_requests_total{outcome=\"not_executed\"}") >= 1.0, "{mode}");
        let writes = [
            "latches",
            "workers",
            "process",
            "propose",
            "commit",
            "committed_to_applied",
            "applied_to_caller",
            "applied_to_released",
        ];
        let counted = |of: &str| stage(&after, of, "count") - stage(&before, of, "count");
        for of in writes {
            let least = if of == "workers" || of == "snapshot" { 20.0 } else { 10.0 };
            assert!(counted(of) >= least, "{mode}: {} of {of}", counted(of));
        }
        assert!(counted("whole") >= 20.0 && counted("snapshot") >= 20.0, "{mode}");
        // Each entry is written and applied by three nodes, and some of them in one write.
        assert!(counted("log_sync") > 0.0 && counted("apply") > 0.0, "{mode}");
        // Of the client's and none of another's, but that a follower refuses what its leader then does.
        assert!(more("storage_pipeline_commands_total{outcome=\"applied\"}") >= 20.0, "{mode}");
        assert!(more("storage_pipeline_commands_total{outcome=\"not_executed\"}") >= 1.0, "{mode}");
        assert!(
            stage(&after, "whole", "sum") > stage(&after, "commit", "sum"),
            "a part is shorter than the whole"
        );
        assert_eq!(after["storage_pipeline_poisoned"], 0.0, "{mode}");
        nodes.finish();
    }
}

#[test]
fn the_status_says_who_a_node_is_who_leads_and_what_else_is_asked_for_is_not_found() {
    with_more_time(Duration::from_millis(20), says_who_it_is);
}

/// `None` where another node was elected meanwhile, as happens on a machine that has other things to do.
fn says_who_it_is(tick: Duration) -> Option<()> {
    let nodes = Nodes::start_with(CompletionMode::default(), |config| {
        config.status_listen = Some("127.0.0.1:0".to_owned());
        config.store.split_keys = vec![b"m".to_vec()];
        config.store.tick = tick;
    });
    nodes.make_leader(2);
    nodes.put(b"key", b"v");
    nodes.agree();
    let terms = || -> Vec<_> {
        nodes
            .storages()
            .iter()
            .flat_map(|each| each.regions().map(|region| region.status().term).collect::<Vec<_>>())
            .collect()
    };
    let before = terms();
    let mut told = Vec::new();
    for id in NODES {
        let address = nodes.node(id).status_address().unwrap();
        let (head, body) = get(address, "/status");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/json"), "{head}");
        told.push((id, serde_json::from_str::<Value>(&body).unwrap()));
        assert!(get(address, "/nothing").0.starts_with("HTTP/1.1 404"));
    }
    let leads_all = nodes.storage(2).regions().all(|region| region.status().role == Role::Leader);
    if terms() != before || !leads_all {
        nodes.finish();
        return None;
    }
    for (id, status) in told {
        assert_eq!(status["cluster_id"], 7);
        assert_eq!(status["node_id"], id);
        assert_eq!(status["serving"], true);
        assert_eq!(status["fault"], Value::Null);
        assert_eq!(status["regions"].as_array().unwrap().len(), 2);
        for region in status["regions"].as_array().unwrap() {
            assert_eq!(region["leader"], 2, "{region}");
            assert_eq!(region["role"], if id == 2 { "leader" } else { "follower" }, "{region}");
        }
        assert_eq!(status["regions"][1]["start_key"], "m");
        assert_eq!(status["regions"][0]["applied_index"], nodes.storage(id).applied_index());
        assert_eq!(status["links"].as_array().unwrap().len(), 2);
    }
    nodes.finish();
    Some(())
}

/// What comes back on a connection until it ends, at most for so long; nothing where it is reset.
fn until_end(mut stream: TcpStream, most: Duration) -> String {
    stream.set_read_timeout(Some(most)).unwrap();
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("it is still open")
        }
        _ => String::from_utf8(answer).unwrap(),
    }
}

#[test]
fn the_status_is_answered_beside_callers_that_say_nothing_too_much_or_too_slowly() {
    let nodes = Nodes::start_with(CompletionMode::default(), |config| {
        config.status_listen = Some("127.0.0.1:0".to_owned());
    });
    nodes.put(b"key", b"v");
    let address = nodes.node(1).status_address().unwrap();
    let is_served = || assert!(get(address, "/status").0.starts_with("HTTP/1.1 200"));

    // A head without end is cut off, and so is one that comes a byte at a time.
    let mut endless = TcpStream::connect(address).unwrap();
    let _ = endless.write_all(b"GET /status HTTP/1.1\r\nHost: node\r\n");
    let _ = endless.write_all(&b"X: y\r\n".repeat(64 << 10));
    assert!(!until_end(endless, PATIENCE).starts_with("HTTP/1.1 200"));
    is_served();
    let mut slow = TcpStream::connect(address).unwrap();
    let cut = (0..200).find(|_| {
        thread::sleep(Duration::from_millis(100));
        slow.write_all(b"G").is_err()
    });
    assert!(cut.is_some(), "a slow caller keeps its place for ever");

    // More callers than there are places, none of which says a word: each goes in its time, and so does who comes behind them.
    let silent: Vec<_> = (0..24).map(|_| TcpStream::connect(address).unwrap()).collect();
    is_served();
    for stream in silent {
        until_end(stream, PATIENCE);
    }
    is_served();
    nodes.finish();
}

/// The words between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn the_series_and_the_values_of_their_labels_that_the_documents_list_are_all_that_are_served() {
    let nodes = Nodes::start_with(CompletionMode::default(), |config| {
        config.status_listen = Some("127.0.0.1:0".to_owned());
    });
    nodes.put(b"key", b"v");
    let (_, text) = get(nodes.node(1).status_address().unwrap(), "/metrics");
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let served: BTreeSet<_> = types.map(|(name, _)| name.to_owned()).collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/server.md");
    let page = fs::read_to_string(page).unwrap();
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `storage_pipeline_")).collect();
    let name = |row: &str| {
        let series = quoted(row).next().unwrap().split('{').next().unwrap().to_owned();
        series.strip_suffix("_total").map_or(series.clone(), str::to_owned)
    };
    let listed: BTreeSet<_> = rows.iter().map(|row| name(row)).collect();
    assert_eq!(listed, served);

    // A label whose values are words of ours has them all listed, and no others.
    for (series, label) in
        [("stage_seconds", "stage"), ("in_flight", "what"), ("queued", "room"), ("commands", "outcome")]
    {
        let row = rows.iter().find(|row| name(row) == format!("storage_pipeline_{series}")).unwrap();
        let listed: BTreeSet<_> = quoted(row).skip(1).collect();
        let start = format!("storage_pipeline_{series}");
        let of_series = text.lines().filter(|line| line.starts_with(&start));
        let value = |line: &'_ str| {
            line.split_once(&format!("{label}=\""))
                .map(|(_, rest)| rest.split('"').next().unwrap().to_owned())
        };
        let served: BTreeSet<_> = of_series.filter_map(value).collect();
        assert_eq!(listed, served.iter().map(String::as_str).collect(), "{series}");
    }
    nodes.finish();
}

#[test]
fn what_waits_is_counted_where_it_waits_and_an_outcome_that_nobody_knows_is_counted_too() {
    with_more_time(Duration::from_millis(500), what_waits);
}

/// `None` where the time was too short for a command to reach apply.
fn what_waits(time: Duration) -> Option<()> {
    let dir = tempfile::tempdir().unwrap();
    let local = || "127.0.0.1:0".to_owned();
    let store = config(CompletionMode::default(), dir.path());
    let mut config = NodeConfig { cluster_id: 7, listen: local(), store, ..NodeConfig::default() };
    config.status_listen = Some(local());
    let recorder = Arc::<Recorder>::default();
    let node = Node::start_with(config, Some(Arc::clone(&recorder) as Arc<dyn Observe>)).unwrap();
    wait_for("a write", || node.storage().raw_put(b"key", b"v").is_applied());
    let value = |series: &str| -> f64 {
        let (_, text) = get(node.status_address().unwrap(), "/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.unwrap_or_else(|| panic!("{series}")).trim().parse().unwrap()
    };
    // Apply stands still, so what is committed waits for it, and so does the latch of its key.
    recorder.hold("Applying");
    let put = |key: &[u8]| RawPut { key: key.to_vec(), value: b"v".to_vec() };
    let first = Answer::new();
    node.storage().submit_within(put(b"same"), time, first.callback());
    wait_for("apply, or the deadline", || recorder.is_held("Applying") || first.count() > 0);
    if !recorder.is_held("Applying") {
        recorder.let_go("Applying");
        return None;
    }
    let others = [b"same", b"same", b"same", b"k--1", b"k--2", b"k--3", b"k--4"].map(|key| {
        let answer = Answer::new();
        node.storage().submit(put(key), answer.callback());
        answer
    });
    wait_for("a queue", || value("storage_pipeline_queued{room=\"apply\"}") >= 1.0);
    wait_for("the latches", || value("storage_pipeline_in_flight{what=\"latches_waiting\"}") == 3.0);
    assert_eq!(value("storage_pipeline_in_flight{what=\"commands\"}"), 8.0);
    assert_eq!(value("storage_pipeline_in_flight{what=\"latches_held\"}"), 5.0);
    assert!(value("storage_pipeline_in_flight{what=\"bytes\"}") > 0.0);
    assert!(first.wait().is_indeterminate());
    wait_for("the count", || value("storage_pipeline_commands_total{outcome=\"indeterminate\"}") == 1.0);
    recorder.let_go("Applying");
    others.iter().for_each(|answer| assert!(answer.wait().is_applied()));
    wait_for("an empty store", || value("storage_pipeline_in_flight{what=\"commands\"}") == 0.0);
    node.stop();
    recorder.check_answers();
    Some(())
}
