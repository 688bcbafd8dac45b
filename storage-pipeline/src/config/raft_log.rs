//! The kinds of raft log that a configuration can ask for, and their names.

use std::{fmt, str::FromStr};

use super::ConfigError;

/// What keeps the raft log. A data directory stays with the one it was made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RaftLog {
    /// A RocksDB instance of its own.
    #[default]
    RocksDb,
    /// A raft-engine.
    #[cfg(feature = "raft-engine")]
    RaftEngine,
}

impl RaftLog {
    /// Every kind that this build has.
    pub const ALL: &'static [Self] = &[
        Self::RocksDb,
        #[cfg(feature = "raft-engine")]
        Self::RaftEngine,
    ];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RocksDb => "RocksDB",
            #[cfg(feature = "raft-engine")]
            Self::RaftEngine => "raft-engine",
        }
    }
}

impl fmt::Display for RaftLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RaftLog {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let found = Self::ALL.iter().find(|kind| kind.name() == name);
        found.copied().ok_or_else(|| {
            let range = Self::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" or ");
            ConfigError { field: "raft_log", value: name.to_owned(), range }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_raft_log_has_the_name_it_is_asked_for_by() {
        for kind in RaftLog::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
        }
        let error = "Bitcask".parse::<RaftLog>().unwrap_err().to_string();
        assert!(error.contains("raft_log is Bitcask") && error.contains("RocksDB"), "{error}");
    }
}
