//! raft-rs speaks slog, this crate speaks tracing: a drain between them.

use slog::{Drain, Level, Logger, OwnedKVList, Record, o};

/// A logger whose records become tracing events.
pub(crate) fn slog_to_tracing() -> Logger {
    Logger::root(ToTracing, o!())
}

struct ToTracing;

impl Drain for ToTracing {
    type Ok = ();
    type Err = slog::Never;

    fn log(&self, record: &Record<'_>, _: &OwnedKVList) -> Result<(), slog::Never> {
        let text = record.msg();
        match record.level() {
            Level::Critical | Level::Error => tracing::error!(target: "raft", "{text}"),
            Level::Warning => tracing::warn!(target: "raft", "{text}"),
            Level::Info => tracing::info!(target: "raft", "{text}"),
            Level::Debug => tracing::debug!(target: "raft", "{text}"),
            Level::Trace => tracing::trace!(target: "raft", "{text}"),
        }
        Ok(())
    }
}
