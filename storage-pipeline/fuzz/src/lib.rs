//! What the targets do with their bytes. Here: keys, locks, write records, changes, entries and settings. Each is refused or taken,
//! without a panic and without more memory than it has bytes; what is taken comes back as it was.

use std::time::Duration;

use storage_pipeline::{
    CompletionMode, Config, RaftLog,
    engine::modify,
    raftstore::entry::{self, Owner},
    txn::{
        SHORT_VALUE_MAX_BYTES,
        keys::{self, Key},
        lock::{Lock, LockType},
        write::{Write, WriteType},
    },
};

// It takes modules of the pipeline as they are, whose own tests run where they belong.
#[cfg(not(test))]
pub mod logs;
pub mod messages;
pub mod node_config;

/// What those modules know as the pipeline's errors.
#[cfg(not(test))]
mod error {
    pub(crate) use storage_pipeline::OpenError;
}

/// Takes the bytes behind the first one for what the first one says.
///
/// # Panics
/// If something does not come back as it was.
pub fn run(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    match kind % 9 {
        0 => stored_lock(bytes),
        1 => stored_write(bytes),
        2 => stored_key(bytes),
        3 => order(bytes),
        4 => changes(bytes),
        5 => settings(bytes),
        6 => names(bytes),
        7 => made(bytes),
        _ => of_an_entry(bytes),
    }
}

fn stored_lock(bytes: &[u8]) {
    let Ok(lock) = Lock::decode(bytes) else { return };
    assert_eq!(lock.encode(), bytes, "a lock has one encoding");
    // Whatever key it is under, it is told of or refused.
    let _ = lock.into_info(&Key::from_encoded(bytes));
}

fn stored_write(bytes: &[u8]) {
    let Ok(write) = Write::decode(bytes) else { return };
    assert_eq!(write.encode(), bytes, "a write record has one encoding");
}

fn stored_key(bytes: &[u8]) {
    if let Ok(raw) = keys::decode(bytes) {
        assert_eq!(Key::from_raw(&raw).as_encoded(), bytes, "a key has one encoding");
    }
    if let Ok((key, ts)) = keys::split_ts(bytes) {
        assert_eq!(Key::from_encoded(key).append_ts(ts), bytes);
    }
}

/// Stored keys lie in the order of the user's keys, and versions of one key newest first.
fn order(bytes: &[u8]) {
    let Some(([split, first, second], rest)) = bytes.split_first_chunk() else { return };
    let (left, right) = rest.split_at(usize::from(*split).min(rest.len()));
    let (newer, older) = (u64::from(*first), u64::from(*second));
    let stored = |key: &[u8], ts| Key::from_raw(key).append_ts(ts);
    let wanted = left.cmp(right).then(older.cmp(&newer));
    assert_eq!(stored(left, newer).cmp(&stored(right, older)), wanted);
    assert!(stored(left, 0) < Key::from_raw(left).after_versions());
    if left < right {
        assert!(Key::from_raw(left).after_versions() < stored(right, u64::MAX));
    }
}

fn changes(bytes: &[u8]) {
    let mut all = Vec::new();
    if modify::decode(bytes, |modify| all.push(modify)).is_ok() {
        assert_eq!(modify::encode(&all), bytes, "a list of changes has one encoding");
    }
}

/// The data of an entry, for the region that it names. For any other it is refused.
fn of_an_entry(bytes: &[u8]) {
    let (numbers, _) = bytes.get(1..).unwrap_or_default().as_chunks();
    let [region, version, ..] = numbers else { return };
    let owner = Owner { region: u64::from_le_bytes(*region), version: u64::from_le_bytes(*version) };
    let mut all = Vec::new();
    if entry::decode(owner, bytes, |modify| all.push(modify)).is_ok() {
        assert_eq!(entry::encode(owner, &all), bytes, "an entry has one encoding");
        let other = Owner { region: owner.region ^ 1, ..owner };
        assert!(entry::decode(other, bytes, |_| ()).is_err());
    }
}

fn settings(mut bytes: &[u8]) {
    let mut number = || {
        let (head, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        bytes = rest;
        u64::from_le_bytes(*head)
    };
    let mut config = Config::new("dir");
    config.replica_id = number();
    config.voters = vec![number(), config.replica_id];
    config.latch_slots = number() as usize;
    config.max_in_flight_commands = number() as usize;
    config.max_in_flight_bytes = number() as usize;
    config.max_key_bytes = number() as usize;
    config.max_value_bytes = number() as usize;
    config.worker_threads = number() as usize;
    config.election_ticks = number() as usize;
    config.heartbeat_ticks = number() as usize;
    config.clock_drift_percent = number() as u32;
    config.raftstore_mailbox = number() as usize;
    config.max_apply_bytes = number();
    config.log_gc_entries = number();
    config.tick = Duration::from_nanos(number());
    config.default_timeout = Duration::from_secs(number());
    config.stay_awake = Duration::from_micros(number());
    config.open_timeout = Duration::from_secs(number());
    if let Err(error) = config.validate() {
        assert!(error.to_string().contains(error.field), "{error}");
    }
}

fn names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(mode) = text.parse::<CompletionMode>() {
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
    if let Ok(log) = text.parse::<RaftLog>() {
        assert_eq!(log.name().parse::<RaftLog>().ok(), Some(log));
    }
}

/// Records as a transaction makes them. One that lost its end is another record, or none.
fn made(bytes: &[u8]) {
    let Some(([kind, split, flags, numbers @ ..], rest)) = bytes.split_first_chunk::<19>() else { return };
    let (primary, value) = rest.split_at(usize::from(*split).min(rest.len()));
    let (numbers, _) = numbers.as_chunks::<8>();
    // A longer value has a place of its own.
    let short_value = (flags & 1 != 0).then(|| value[..value.len().min(SHORT_VALUE_MAX_BYTES)].to_vec());
    let lock_type = [LockType::Put, LockType::Delete, LockType::Lock][usize::from(kind % 3)];
    let lock = Lock {
        lock_type,
        primary: primary.to_vec(),
        start_ts: u64::from_le_bytes(numbers[0]),
        min_commit_ts: u64::from_le_bytes(numbers[1]),
        ttl_ms: u64::from_be_bytes(numbers[0]),
        txn_size: u64::from(*split),
        short_value: short_value.clone(),
    };
    let encoded = lock.encode();
    for end in 0..encoded.len() {
        assert_ne!(Lock::decode(&encoded[..end]).as_ref(), Ok(&lock));
    }
    assert_eq!(Lock::decode(&encoded), Ok(lock));
    let mut write = Write::new(WriteType::from(lock_type), u64::from_le_bytes(numbers[0]), short_value);
    (write.protected, write.has_overlapped_rollback) = (flags & 2 != 0, flags & 4 != 0);
    let encoded = write.encode();
    for end in 0..encoded.len() {
        assert_ne!(Write::decode(&encoded[..end]).as_ref(), Ok(&write));
    }
    assert_eq!(Write::decode(&encoded), Ok(write));
}
