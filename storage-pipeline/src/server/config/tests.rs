use std::{fs, path::Path};

use super::*;

const NODE: &str = r#"
    cluster_id = 7
    node_id = 2
    dir = "d"
    listen = "127.0.0.1:0"
    [peers]
    1 = "127.0.0.1:1"
    3 = "127.0.0.1:3"
"#;

fn node() -> NodeConfig {
    let mut config = NodeConfig::default();
    config.read(NODE).unwrap();
    config
}

#[test]
fn a_file_is_read_flags_override_it_and_the_voters_follow_from_the_peers() {
    let mut config = node();
    config.set("tick_ms", "7").unwrap();
    config.set("completion_mode", "ApplyAll").unwrap();
    config.set("read_policy", "ReadIndex").unwrap();
    config.set("split_keys", r#"['h', 'q\xff']"#).unwrap();
    config.validate().unwrap();
    assert_eq!((config.node_id(), &config.store.voters), (2, &vec![1, 2, 3]));
    assert_eq!(config.store.tick, Duration::from_millis(7));
    assert!(config.peers.keys().eq(&[1, 3]));
    assert_eq!(config.store.split_keys, [&b"h"[..], b"q\xff"]);
    assert_eq!(config.advertised(), "127.0.0.1:0");
}

#[test]
fn whatever_is_wrong_is_named_with_its_field_its_value_and_its_range() {
    let cases = [
        ("node_id", "0", "1 or more"),
        ("cluster_id", "0", "1 or more"),
        ("cluster_id", "-1", "a whole number"),
        ("listen", "nowhere", "a host and a port"),
        ("dir", "3", "a string"),
        ("completion_mode", "Nobody", "WorkerAll"),
        ("raft_log", "Bitcask", "RocksDB"),
        ("read_policy", "Guess", "ReadIndex"),
        ("worker_threads", "0", "1 to 1024"),
        ("worker_threads", "many", "a whole number"),
        ("tick_ms", "0", "1ms to 10s"),
        ("max_message_bytes", "1000", "33619968 to"),
        ("voters", "[1, 1]", "different ids"),
        ("split_keys", "['b', 'a']", "ascending keys"),
        ("split_keys", r"['\q']", "a backslash"),
        ("split_keys", "[1]", "a list of strings"),
        ("voters", "[\"x\"]", "a list of ids"),
        ("peers", "{ 0 = \"h:1\" }", "a table"),
        ("peers", "{ 1 = \"h\" }", "a table"),
        ("server_threads", "0", "1 to 1024"),
    ];
    for (field, value, range) in cases {
        let mut config = node();
        let error = config.set(field, value).and_then(|()| config.validate()).unwrap_err();
        let words = error.to_string();
        assert!(words.contains(field.trim_end_matches("_ms")) && words.contains(range), "{words}");
    }
}

#[test]
fn an_unknown_field_and_a_text_that_is_no_toml_are_refused() {
    let error = node().read("worker_thread = 1").unwrap_err().to_string();
    assert!(error.contains("no field worker_thread;") && error.contains("worker_threads"), "{error}");
    let error = node().read("worker_threads = ").unwrap_err().to_string();
    assert!(error.contains("not TOML"), "{error}");
    let error = node().read_file(Path::new("/nowhere/node.toml")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/node.toml"), "{error}");
}

#[test]
fn the_documents_name_every_field_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("../docs/server.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: Vec<_> =
        rows.map(|(name, _)| name).filter(|name| field::FIELDS.iter().any(|f| f.name == *name)).collect();
    let all: Vec<_> = field::FIELDS.iter().map(|field| field.name).collect();
    assert_eq!(documented, all);
}
