//! A write of the log in two halves: it is checked and kept, then written, alone or at once with what other regions write.

use raft::eraftpb::{Entry, HardState};

use super::{
    LogStorage, LogWrite, Position, RegionLog,
    recent::{Known, is_normal},
};
use crate::{engine::EngineError, planted::planted};

/// A write that was checked and not made yet.
pub(super) struct Staged {
    pub(super) entries: Vec<Entry>,
    pub(super) keeps_state: bool,
    pub(super) truncated: Option<Position>,
    pub(super) restart: bool,
    pub(super) sync: bool,
}

impl LogStorage {
    /// Checks what a round asks to be persisted and keeps it for the next write: entries, which replace everything at and
    /// after the first one's index, and the hard state. With `sync` they are to be durable afterwards.
    ///
    /// A hard state that differs by its commit index alone is not written: Raft counts it as volatile, because it is
    /// learnt again, and writing it with every entry costs half as much as the entry. A change of members makes it durable
    /// twice. With the change's own entry, because an earlier change is committed by then, and whoever has the later one in
    /// its log must not ask for votes before it has applied the earlier one, not after a restart either: it could commit the
    /// later one by a majority of those who voted before both. And once the change itself is committed, whatever `sync`
    /// says: those who voted before it may leave for good then, and nobody else could tell those who are left.
    ///
    /// Says whether the write is synced.
    ///
    /// # Errors
    /// The first fault of an earlier call, or entries that raft never asks for.
    pub(crate) fn stage(
        &mut self,
        entries: Vec<Entry>,
        hard_state: Option<HardState>,
        sync: bool,
    ) -> Result<bool, EngineError> {
        self.check_fault()?;
        if let Err(error) = self.check_append(&entries) {
            return Err(self.poison(error));
        }
        let mut vote_changed = false;
        if let Some(new) = hard_state {
            vote_changed = (new.term, new.vote) != (self.hard_state.term, self.hard_state.vote);
            self.hard_state = new;
        }
        let change = self.known.change;
        let commits_change = self.kept_commit < change
            && change <= self.hard_state.commit
            && entries.first().is_none_or(|first| change < first.index)
            && !planted!(UnsyncedChange);
        let sync = sync || commits_change;
        let keeps_state = vote_changed || commits_change || !entries.iter().all(is_normal);
        if !entries.is_empty() || vote_changed || sync {
            let truncated = self.truncate_next.then_some(self.truncated);
            self.staged = Some(Staged { entries, keeps_state, truncated, restart: false, sync });
        }
        Ok(sync)
    }

    /// What is to be written, if anything is.
    pub(crate) fn staged(&self) -> Option<LogWrite<'_>> {
        let Staged { entries, keeps_state, truncated, restart, sync } = self.staged.as_ref()?;
        Some(LogWrite {
            region: self.engine.region(),
            entries,
            hard_state: keeps_state.then_some(&self.hard_state),
            truncated: *truncated,
            restart: *restart,
            sync: *sync,
        })
    }

    /// The engine, for a write of several regions.
    pub(crate) const fn engine(&self) -> &RegionLog {
        &self.engine
    }

    /// What was staged is written, or that failed: nothing of it may be acknowledged then.
    pub(crate) fn written(&mut self, result: &Result<(), EngineError>) {
        let Some(Staged { entries, keeps_state, restart, truncated, .. }) = self.staged.take() else {
            return;
        };
        if let Err(error) = result {
            self.poison(error.clone());
            return;
        }
        self.truncate_next = false;
        if keeps_state {
            self.kept_commit = self.hard_state.commit;
        }
        if restart {
            self.truncated = truncated.unwrap_or_default();
            self.last_index = self.truncated.index;
            self.known = Known::after(self.truncated);
        }
        if let Some(last) = entries.last() {
            self.last_index = last.index;
            self.known.append(entries);
        }
    }

    /// Writes what is staged, for this region alone.
    ///
    /// # Errors
    /// The engine's refusal. Nothing of what was staged may be acknowledged.
    pub(crate) fn write_staged(&mut self) -> Result<(), EngineError> {
        let Some(write) = self.staged() else { return Ok(()) };
        let result = self.engine.write(std::slice::from_ref(&write));
        self.written(&result);
        result
    }

    /// Raft never asks for anything else; if it did, the log must not follow.
    fn check_append(&self, entries: &[Entry]) -> Result<(), EngineError> {
        let Some(first) = entries.first() else { return Ok(()) };
        let lowest = self.truncated.index.max(self.hard_state.commit) + 1;
        if first.index < lowest || first.index > self.last_index + 1 {
            let (index, last) = (first.index, self.last_index);
            let what = format!("entry {index} is outside of what may be appended: {lowest} to {}", last + 1);
            return Err(EngineError::new(what));
        }
        let index = first.index - 1;
        let mut before = Position { index, term: self.known.terms.of(index) };
        for entry in entries {
            before = before.followed_by(entry).map_err(EngineError::new)?;
        }
        Ok(())
    }
}
