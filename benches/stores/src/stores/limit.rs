//! What the disk allows: a log whose blocks are there already, written over and over, with one sync for all who wait.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::unix::fs::FileExt,
    path::Path,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use benches::round::Failure;

use super::Store;

/// Bytes of the file. It starts anew at the end: this keeps nothing.
const ROOM: u64 = 32 << 20;

pub(super) struct Wal {
    file: File,
    state: Mutex<State>,
    synced: Condvar,
}

#[derive(Default)]
struct State {
    /// What waits to be written.
    waiting: Vec<u8>,
    at: u64,
    /// Numbers of the last put that was taken and of the last that is on disk.
    taken: u64,
    on_disk: u64,
    /// Somebody is writing for all who came before.
    busy: bool,
}

impl Wal {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        if file.metadata()?.len() != ROOM {
            let zeros = vec![0; 1 << 20];
            for _ in 0..ROOM >> 20 {
                file.write_all(&zeros)?;
            }
        }
        file.sync_all()?;
        Ok(Self { file, state: Mutex::default(), synced: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Wal {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let mut state = self.lock();
        state.waiting.extend_from_slice(key);
        state.waiting.extend_from_slice(value);
        state.taken += 1;
        let own = state.taken;
        while state.on_disk < own {
            if state.busy {
                state = self.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.busy = true;
            let (bytes, last) = (std::mem::take(&mut state.waiting), state.taken);
            let length = bytes.len() as u64;
            let at = if state.at + length > ROOM { 0 } else { state.at };
            state.at = at + length;
            drop(state);
            let written = self.file.write_all_at(&bytes, at).and_then(|()| self.file.sync_data());
            state = self.lock();
            state.busy = false;
            if written.is_ok() {
                state.on_disk = last;
            }
            self.synced.notify_all();
            written?;
        }
        Ok(())
    }
}
