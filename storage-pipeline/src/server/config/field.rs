//! The fields that a file may name, each with what it takes. `docs/server.md` says what they mean; a test compares the names.

use std::{collections::BTreeMap, time::Duration};

use toml::Value;

use super::{NodeConfig, key::unescape};
use crate::config::ReadPolicy;

/// One field.
pub(super) struct Field {
    pub(super) name: &'static str,
    /// Sets it. The error says in words what it takes.
    pub(super) set: fn(&mut NodeConfig, &Value) -> Result<(), String>,
}

/// Fields that are a count, or a text with a name for each value, as one line each.
macro_rules! fields {
    ($($name:literal => |$config:ident, $value:ident| $set:expr,)*) => {
        &[$(Field { name: $name, set: |$config, $value| { $set; Ok(()) } },)*]
    };
}

/// All fields.
pub(super) const FIELDS: &[Field] = fields![
    "cluster_id" => |c, v| c.cluster_id = count(v)?,
    "node_id" => |c, v| c.store.replica_id = count(v)?,
    "dir" => |c, v| c.store.dir = text(v)?.into(),
    "listen" => |c, v| c.listen = text(v)?.to_owned(),
    "status_listen" => |c, v| c.status_listen = Some(text(v)?.to_owned()),
    "advertise" => |c, v| c.advertise = Some(text(v)?.to_owned()),
    "peers" => |c, v| c.peers = addresses(v)?,
    "voters" => |c, v| c.store.voters = ids(v)?,
    "split_keys" => |c, v| c.store.split_keys = keys(v)?,
    "completion_mode" => |c, v| c.store.completion_mode = text(v)?.parse().map_err(words)?,
    "raft_log" => |c, v| c.store.raft_log = text(v)?.parse().map_err(words)?,
    "read_policy" => |c, v| c.store.read_policy = read_policy(v)?,
    "tls_authority" => |c, v| c.tls.authority = Some(text(v)?.into()),
    "tls_certificate" => |c, v| c.tls.certificate = Some(text(v)?.into()),
    "tls_key" => |c, v| c.tls.key = Some(text(v)?.into()),
    "server_threads" => |c, v| c.server_threads = count(v)?,
    "peer_queue_messages" => |c, v| c.peer_queue_messages = count(v)?,
    "peer_queue_bytes" => |c, v| c.peer_queue_bytes = count(v)?,
    "max_connection_requests" => |c, v| c.max_connection_requests = count(v)?,
    "max_command_bytes" => |c, v| c.max_command_bytes = count(v)?,
    "max_message_bytes" => |c, v| c.max_message_bytes = count(v)?,
    "drain_timeout_ms" => |c, v| c.drain_timeout = milliseconds(v)?,
    "latch_slots" => |c, v| c.store.latch_slots = count(v)?,
    "max_in_flight_commands" => |c, v| c.store.max_in_flight_commands = count(v)?,
    "max_in_flight_bytes" => |c, v| c.store.max_in_flight_bytes = count(v)?,
    "max_key_bytes" => |c, v| c.store.max_key_bytes = count(v)?,
    "max_value_bytes" => |c, v| c.store.max_value_bytes = count(v)?,
    "max_entry_bytes" => |c, v| c.store.max_entry_bytes = count(v)?,
    "default_timeout_ms" => |c, v| c.store.default_timeout = milliseconds(v)?,
    "apply_threads" => |c, v| c.store.apply_threads = count(v)?,
    "worker_threads" => |c, v| c.store.worker_threads = count(v)?,
    "tick_ms" => |c, v| c.store.tick = milliseconds(v)?,
    "election_ticks" => |c, v| c.store.election_ticks = count(v)?,
    "heartbeat_ticks" => |c, v| c.store.heartbeat_ticks = count(v)?,
    "clock_drift_percent" => |c, v| c.store.clock_drift_percent = count(v)?,
    "raftstore_mailbox" => |c, v| c.store.raftstore_mailbox = count(v)?,
    "max_apply_bytes" => |c, v| c.store.max_apply_bytes = count(v)?,
    "log_gc_entries" => |c, v| c.store.log_gc_entries = count(v)?,
    "log_gc_patience_ticks" => |c, v| c.store.log_gc_patience_ticks = count(v)?,
    "log_gc_size_limit" => |c, v| c.store.log_gc_size_limit = count(v)?,
    "stay_awake_us" => |c, v| c.store.stay_awake = Duration::from_micros(count(v)?),
    "open_timeout_ms" => |c, v| c.store.open_timeout = milliseconds(v)?,
];

fn count<T: TryFrom<i64>>(value: &Value) -> Result<T, String> {
    let number = value.as_integer().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| "a whole number of the size of this field".to_owned())
}

fn milliseconds(value: &Value) -> Result<Duration, String> {
    count(value).map(Duration::from_millis)
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "a string".to_owned())
}

fn words(error: impl ToString) -> String {
    format!("known: {}", error.to_string())
}

fn ids(value: &Value) -> Result<Vec<u64>, String> {
    let ids = value.as_array().and_then(|ids| ids.iter().map(|id| count(id).ok()).collect());
    ids.ok_or_else(|| "a list of ids".to_owned())
}

fn keys(value: &Value) -> Result<Vec<Vec<u8>>, String> {
    let texts = value.as_array().and_then(|keys| keys.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    let texts = texts.ok_or_else(|| "a list of strings".to_owned())?;
    texts.into_iter().map(unescape).collect()
}

fn addresses(value: &Value) -> Result<BTreeMap<u64, String>, String> {
    let one = |(id, address): (&String, &Value)| {
        let id = id.parse().ok().filter(|id| *id > 0)?;
        let address = address.as_str()?;
        crate::protocol::dial::Dial::new(address, None).ok()?;
        Some((id, address.to_owned()))
    };
    let addresses = value.as_table().and_then(|table| table.iter().map(one).collect());
    addresses.ok_or_else(|| "a table from ids, from 1 on, to addresses host:port".to_owned())
}

fn read_policy(value: &Value) -> Result<ReadPolicy, String> {
    match text(value)? {
        "Lease" => Ok(ReadPolicy::Lease),
        "ReadIndex" => Ok(ReadPolicy::ReadIndex),
        _ => Err("Lease or ReadIndex".to_owned()),
    }
}
