//! Checks of single fields, shared by all commands. Each names the field that is wrong.

use crate::{config::Config, error::InvalidCommand};

/// Largest command in bytes: far below the 4 GiB that a length in a raft entry can say, whatever the encoding adds.
const MAX_COMMAND_BYTES: usize = 2 << 30;

type Checked = Result<(), InvalidCommand>;

pub(super) fn total(size: usize, most: usize) -> Checked {
    at_most("command", size, most.min(MAX_COMMAND_BYTES))
}

pub(super) fn key(field: &'static str, key: &[u8], config: &Config) -> Checked {
    if key.is_empty() {
        return Err(InvalidCommand::EmptyKey { field: field.into() });
    }
    at_most(field, key.len(), config.max_key_bytes)
}

pub(super) fn keys(field: &'static str, keys: &[Vec<u8>], config: &Config) -> Checked {
    if keys.is_empty() {
        return Err(InvalidCommand::EmptyList { field: field.into() });
    }
    keys.iter().try_for_each(|each| key(field, each, config))
}

/// A bound of a range may be empty, and may be the immediate successor of the longest key.
pub(super) fn bound(field: &'static str, bound: &[u8], config: &Config) -> Checked {
    at_most(field, bound.len(), config.max_key_bytes.saturating_add(1))
}

pub(super) fn value(field: &'static str, value: &[u8], config: &Config) -> Checked {
    at_most(field, value.len(), config.max_value_bytes)
}

/// A timestamp that names a point in time. Zero means "none" and the maximum means "no limit" elsewhere.
pub(super) fn timestamp(field: &'static str, value: u64) -> Checked {
    if value == 0 {
        return Err(InvalidCommand::OutOfRange { field: field.into(), value, range: "1 or more".into() });
    }
    timestamp_or_none(field, value)
}

/// A timestamp that may be absent, which is written as zero.
pub(super) fn timestamp_or_none(field: &'static str, value: u64) -> Checked {
    if value == u64::MAX {
        return Err(InvalidCommand::OutOfRange {
            field: field.into(),
            value,
            range: "less than the greatest number".into(),
        });
    }
    Ok(())
}

/// Whether a timestamp is later than another.
pub(super) fn later(field: &'static str, value: u64, must_exceed: u64) -> Checked {
    if value <= must_exceed {
        return Err(InvalidCommand::TimestampOrder { field: field.into(), value, must_exceed });
    }
    timestamp(field, value)
}

pub(super) fn limit(field: &'static str, limit: usize) -> Checked {
    if limit == 0 {
        return Err(InvalidCommand::OutOfRange { field: field.into(), value: 0, range: "1 or more".into() });
    }
    Ok(())
}

fn at_most(field: &'static str, size: usize, limit: usize) -> Checked {
    if size > limit {
        return Err(InvalidCommand::TooLarge { field: field.into(), size, limit });
    }
    Ok(())
}
