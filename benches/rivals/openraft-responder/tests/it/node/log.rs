//! A log in memory.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    io,
    ops::RangeBounds,
    sync::{Arc, Mutex, MutexGuard},
};

use openraft::{
    alias::{EntryOf, LogIdOf, VoteOf},
    entry::RaftEntry,
    storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage},
};

use super::Config;

/// The log, shared with its readers.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    vote: Option<VoteOf<Config>>,
    purged: Option<LogIdOf<Config>>,
    entries: BTreeMap<u64, EntryOf<Config>>,
}

impl Log {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics under the lock")
    }
}

impl RaftLogReader<Config> for Log {
    async fn try_get_log_entries<R>(&mut self, range: R) -> Result<Vec<EntryOf<Config>>, io::Error>
    where
        R: RangeBounds<u64> + Clone + Debug + Send,
    {
        Ok(self.state().entries.range(range).map(|(_, entry)| entry.clone()).collect())
    }

    async fn read_vote(&mut self) -> Result<Option<VoteOf<Config>>, io::Error> {
        Ok(self.state().vote)
    }
}

impl RaftLogStorage<Config> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Config>, io::Error> {
        let state = self.state();
        let last = state.entries.values().next_back().map(RaftEntry::log_id);
        Ok(LogState { last_purged_log_id: state.purged, last_log_id: last.or(state.purged) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &VoteOf<Config>) -> Result<(), io::Error> {
        self.state().vote = Some(*vote);
        Ok(())
    }

    async fn append<I>(&mut self, entries: I, flushed: IOFlushed<Config>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = EntryOf<Config>> + Send,
        I::IntoIter: Send,
    {
        self.state().entries.extend(entries.into_iter().map(|entry| (entry.index(), entry)));
        flushed.io_completed(Ok(()));
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogIdOf<Config>>) -> Result<(), io::Error> {
        let first_gone = last.map_or(0, |log_id| log_id.index + 1);
        self.state().entries.split_off(&first_gone);
        Ok(())
    }

    async fn purge(&mut self, through: LogIdOf<Config>) -> Result<(), io::Error> {
        let mut state = self.state();
        state.purged = Some(through);
        state.entries = state.entries.split_off(&(through.index + 1));
        Ok(())
    }
}
