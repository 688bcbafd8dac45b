//! Everything that can be set, with its default and its range. `Storage::open` takes it, after `validate`.

use std::{fmt, path::PathBuf, time::Duration};

mod raft_log;
mod split_keys;

pub use raft_log::RaftLog;

use crate::completion_mode::CompletionMode;

/// How a snapshot is made safe to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPolicy {
    /// Under the leader's lease where it is valid, else through ReadIndex.
    #[default]
    Lease,
    /// Always through ReadIndex, as if the lease were never valid.
    ReadIndex,
}

/// The configuration of a store.
///
/// ```
/// use storage_pipeline::{CompletionMode, Config};
/// let mut config = Config::new("/var/lib/store");
/// config.completion_mode = CompletionMode::WorkerAll;
/// config.worker_threads = 0;
/// let error = config.validate().unwrap_err();
/// assert_eq!(error.field, "worker_threads");
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory. It is created where it does not exist.
    pub dir: PathBuf,
    /// Id of this replica in its group, from 1 on. It belongs to the data directory and cannot be changed.
    pub replica_id: u64,
    /// Ids of the replicas with which the group begins, all of which vote. Later the members are in the data.
    pub voters: Vec<u64>,
    /// Keys at which the store is split into regions, each with a raft group, a leader and a log of its own. They ascend, are
    /// the same for all replicas, and belong to the data directory: they cannot be changed. None: one region has all keys.
    pub split_keys: Vec<Vec<u8>>,
    /// What keeps the raft log.
    pub raft_log: RaftLog,
    /// Who tells the caller and who releases the latches.
    pub completion_mode: CompletionMode,
    /// Number of latch slots, a power of two. Keys that share a slot share its lock for some nanoseconds, no more.
    pub latch_slots: usize,
    /// Most commands in flight, waiting ones and reads included.
    pub max_in_flight_commands: usize,
    /// Most bytes of keys and values in flight, waiting commands included.
    pub max_in_flight_bytes: usize,
    /// Longest key in bytes.
    pub max_key_bytes: usize,
    /// Longest value in bytes.
    pub max_value_bytes: usize,
    /// Most bytes of a change as the log has it, and of the command that it comes of: every other replica has to take it in one
    /// message. What is larger is not executed ([`InvalidCommand::TooLarge`](crate::error::InvalidCommand::TooLarge)).
    pub max_entry_bytes: usize,
    /// Time that a command is given where its caller names none.
    pub default_timeout: Duration,
    /// Most threads of the apply pool. Each applies some of the regions, so there are no more than those.
    pub apply_threads: usize,
    /// Threads of the worker pool.
    pub worker_threads: usize,
    /// Length of a raft tick.
    pub tick: Duration,
    /// Ticks without a leader after which an election starts.
    pub election_ticks: usize,
    /// Ticks between two heartbeats. Each renews the lease.
    pub heartbeat_ticks: usize,
    /// The share of the election timeout by which clocks may drift apart, in per cent. The lease is shorter by it.
    pub clock_drift_percent: u32,
    /// How a snapshot is made safe to read.
    pub read_policy: ReadPolicy,
    /// Most messages that wait for the raftstore before it refuses more.
    pub raftstore_mailbox: usize,
    /// Most committed bytes that are handed to apply in one task.
    pub max_apply_bytes: u64,
    /// Applied log entries that are kept before the log is truncated.
    pub log_gc_entries: u64,
    /// Ticks for which log entries are kept for a replica that is not heard and lacks them. One that comes back later gets a
    /// snapshot.
    pub log_gc_patience_ticks: usize,
    /// Most bytes of applied log entries that are kept for replicas that lag behind, whenever the log is truncated. One that
    /// needs an entry beyond them gets a snapshot.
    pub log_gc_size_limit: u64,
    /// The longest that the threads of the scheduler, the raftstore and the apply pool stay awake for a writer that keeps
    /// coming, alone or in twos, before they sleep. It spares each of its writes a wake-up or two and costs up to a core for each thread
    /// while it lasts. Where more than a few commands are in flight they sleep at once. Zero: they always do.
    pub stay_awake: Duration,
    /// Time that `Storage::open` waits for leadership, and for each step of the replay of its log.
    pub open_timeout: Duration,
}

impl Config {
    /// The defaults, for this data directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            replica_id: 1,
            voters: vec![1],
            split_keys: Vec::new(),
            raft_log: RaftLog::default(),
            completion_mode: CompletionMode::default(),
            latch_slots: 4096,
            max_in_flight_commands: 16 * 1024,
            max_in_flight_bytes: 100 << 20,
            max_key_bytes: 4 << 10,
            max_value_bytes: 8 << 20,
            max_entry_bytes: 32 << 20,
            default_timeout: Duration::from_secs(10),
            apply_threads: 2,
            worker_threads: 2,
            tick: Duration::from_millis(50),
            election_ticks: 20,
            heartbeat_ticks: 2,
            clock_drift_percent: 20,
            read_policy: ReadPolicy::default(),
            raftstore_mailbox: 32 * 1024,
            max_apply_bytes: 4 << 20,
            log_gc_entries: 64 * 1024,
            log_gc_patience_ticks: 20,
            log_gc_size_limit: 64 << 20,
            stay_awake: Duration::from_micros(500),
            open_timeout: Duration::from_secs(60),
        }
    }

    /// How long a lease lasts: the least time in which a follower begins an election, less the drift bound. A follower
    /// counts ticks, and the first of them may come as soon as it has heard of its leader.
    #[must_use]
    pub fn lease(&self) -> Duration {
        let election = self.tick * u32::try_from(self.election_ticks.saturating_sub(1)).unwrap_or(u32::MAX);
        election * (100 - self.clock_drift_percent.min(99)) / 100
    }

    /// What a change of one key may need: its value twice, to be compared and to be set, and its key in four places.
    fn least_entry_bytes(&self) -> usize {
        const MARGIN: usize = 4 << 10;
        let (values, keys) = (self.max_value_bytes.saturating_mul(2), self.max_key_bytes.saturating_mul(4));
        values.saturating_add(keys).saturating_add(MARGIN)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let counts = [
            ("latch_slots", self.latch_slots, 1, 1 << 24),
            ("max_in_flight_commands", self.max_in_flight_commands, 1, 1 << 24),
            ("max_in_flight_bytes", self.max_in_flight_bytes, 1, usize::MAX),
            ("max_key_bytes", self.max_key_bytes, 1, 1 << 20),
            ("max_value_bytes", self.max_value_bytes, 1, 1 << 30),
            ("max_entry_bytes", self.max_entry_bytes, self.least_entry_bytes(), u32::MAX as usize),
            ("apply_threads", self.apply_threads, 1, 1024),
            ("worker_threads", self.worker_threads, 1, 1024),
            ("election_ticks", self.election_ticks, 3, 10_000),
            ("heartbeat_ticks", self.heartbeat_ticks, 1, self.election_ticks.saturating_sub(1)),
            ("raftstore_mailbox", self.raftstore_mailbox, 1, 1 << 24),
            ("clock_drift_percent", self.clock_drift_percent as usize, 1, 90),
        ];
        for (field, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                return Err(ConfigError {
                    field,
                    value: value.to_string(),
                    range: format!("{least} to {most}"),
                });
            }
        }
        if !self.latch_slots.is_power_of_two() {
            let value = self.latch_slots.to_string();
            return Err(ConfigError { field: "latch_slots", value, range: "a power of two".to_owned() });
        }
        self.validate_group()?;
        self.validate_split_keys()?;
        let millisecond = Duration::from_millis(1);
        let hour = Duration::from_secs(3600);
        let times = [
            ("tick", self.tick, millisecond, Duration::from_secs(10)),
            ("default_timeout", self.default_timeout, millisecond, 24 * hour),
            ("stay_awake", self.stay_awake, Duration::ZERO, 10 * millisecond),
            ("open_timeout", self.open_timeout, millisecond, 24 * hour),
        ];
        for (field, value, least, most) in times {
            if !(least..=most).contains(&value) {
                let range = format!("{least:?} to {most:?}");
                return Err(ConfigError { field, value: format!("{value:?}"), range });
            }
        }
        for (field, value) in
            [("max_apply_bytes", self.max_apply_bytes), ("log_gc_entries", self.log_gc_entries)]
        {
            if value == 0 {
                return Err(ConfigError { field, value: "0".to_owned(), range: "1 or more".to_owned() });
            }
        }
        Ok(())
    }

    fn validate_group(&self) -> Result<(), ConfigError> {
        if self.replica_id == 0 {
            let (value, range) = ("0".to_owned(), "1 or more".to_owned());
            return Err(ConfigError { field: "replica_id", value, range });
        }
        let mut voters = self.voters.clone();
        voters.sort_unstable();
        voters.dedup();
        if voters.is_empty() || voters.len() < self.voters.len() || voters[0] == 0 {
            let range = "a list of different ids from 1 on".to_owned();
            return Err(ConfigError { field: "voters", value: format!("{:?}", self.voters), range });
        }
        Ok(())
    }
}

/// A value of the configuration is out of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Name of the field.
    pub field: &'static str,
    /// The value it has.
    pub value: String,
    /// The range in words.
    pub range: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, which is not {}", self.field, self.value, self.range)
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_the_lease_is_shorter_than_an_election() {
        let config = Config::new("d");
        config.validate().unwrap();
        assert!(config.lease() < config.tick * config.election_ticks as u32);
    }

    #[test]
    fn every_bad_value_names_its_field_its_value_and_its_range() {
        type Spoil = fn(&mut Config);
        let bad: [(&str, Spoil); 28] = [
            ("replica_id", |c| c.replica_id = 0),
            ("voters", |c| c.voters.clear()),
            ("voters", |c| c.voters = vec![1, 2, 1]),
            ("voters", |c| c.voters = vec![0, 1]),
            ("split_keys", |c| c.split_keys = vec![Vec::new()]),
            ("split_keys", |c| c.split_keys = vec![b"b".to_vec(), b"a".to_vec()]),
            ("split_keys", |c| c.split_keys = vec![vec![1; c.max_key_bytes + 1]]),
            ("split_keys", |c| c.split_keys = (1..=1024u32).map(|n| n.to_be_bytes().to_vec()).collect()),
            ("apply_threads", |c| c.apply_threads = 0),
            ("latch_slots", |c| c.latch_slots = 0),
            ("latch_slots", |c| c.latch_slots = 3),
            ("max_in_flight_commands", |c| c.max_in_flight_commands = 0),
            ("max_in_flight_bytes", |c| c.max_in_flight_bytes = 0),
            ("max_key_bytes", |c| c.max_key_bytes = 0),
            ("max_value_bytes", |c| c.max_value_bytes = (1 << 30) + 1),
            ("max_entry_bytes", |c| c.max_entry_bytes = 2 * c.max_value_bytes),
            ("max_entry_bytes", |c| c.max_value_bytes = 1 << 30),
            ("worker_threads", |c| c.worker_threads = 0),
            ("election_ticks", |c| c.election_ticks = 1),
            ("heartbeat_ticks", |c| c.heartbeat_ticks = c.election_ticks),
            ("raftstore_mailbox", |c| c.raftstore_mailbox = 0),
            ("clock_drift_percent", |c| c.clock_drift_percent = 91),
            ("tick", |c| c.tick = Duration::ZERO),
            ("default_timeout", |c| c.default_timeout = Duration::ZERO),
            ("stay_awake", |c| c.stay_awake = Duration::from_millis(11)),
            ("open_timeout", |c| c.open_timeout = Duration::MAX),
            ("max_apply_bytes", |c| c.max_apply_bytes = 0),
            ("log_gc_entries", |c| c.log_gc_entries = 0),
        ];
        for (field, spoil) in bad {
            let mut config = Config::new("d");
            spoil(&mut config);
            let error = config.validate().unwrap_err();
            assert_eq!(error.field, field);
            assert!(error.to_string().contains(&error.value), "{error}");
        }
    }
}
