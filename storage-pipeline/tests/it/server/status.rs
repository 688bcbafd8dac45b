//! What a node that runs says of itself over HTTP.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;
use storage_pipeline::{Client, ClientConfig, CompletionMode, command::RawGet, raftstore::status::Role};
use tokio::runtime::Runtime;

use super::nodes::{NODES, Nodes};
use crate::support::{PATIENCE, checked, wait_for, with_more_time};

/// The head and the body of an answer.
fn get(address: SocketAddr, path: &str) -> (String, String) {
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
        assert!(counted("log_write") > 0.0 && counted("apply") > 0.0, "{mode}");
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
