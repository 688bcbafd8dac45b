//! The files under a raft-engine: the system's, made longer in advance with zeros, and with a memory of failed syncs.
//!
//! The engine asks for room a stretch at a time and gets blocks that were never written: the first sync of each must
//! record in the file system's journal that they are now. Zeros written once make every later sync one of data only.
//! And where a sync fails the engine ends the thread with a panic; here it goes on to its caller, who is told.

use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    sync::Arc,
};

use parking_lot::Mutex;
use raft_engine::env::{DefaultFileSystem, FileSystem, Handle, Permission, WriteExt};

use crate::engine::EngineError;

type SystemHandle = <DefaultFileSystem as FileSystem>::Handle;
type SystemFile = <DefaultFileSystem as FileSystem>::Writer;

/// What became of the syncs.
#[derive(Debug, Default)]
pub(super) struct Syncs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    succeeded: u64,
    first_failure: Option<EngineError>,
    #[cfg(test)]
    fail_next: bool,
}

impl Syncs {
    /// Whether all of them succeeded. Asked after everything that may sync.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        self.0.lock().first_failure.clone().map_or(Ok(()), Err)
    }

    fn note(&self, sync: impl FnOnce() -> io::Result<()>) {
        let mut state = self.0.lock();
        let result = sync();
        #[cfg(test)]
        let result =
            if std::mem::take(&mut state.fail_next) { Err(io::ErrorKind::Other.into()) } else { result };
        match result {
            Ok(()) => state.succeeded += 1,
            Err(error) => drop(state.first_failure.get_or_insert_with(|| EngineError::new(error)).clone()),
        }
    }

    /// How many succeeded.
    #[cfg(test)]
    pub(super) fn succeeded(&self) -> u64 {
        self.0.lock().succeeded
    }

    #[cfg(test)]
    pub(super) fn fail_next(&self) {
        self.0.lock().fail_next = true;
    }
}

/// The file system.
pub(super) struct AheadFiles {
    syncs: Arc<Syncs>,
}

impl AheadFiles {
    pub(super) const fn new(syncs: Arc<Syncs>) -> Self {
        Self { syncs }
    }

    fn handle(&self, handle: SystemHandle) -> AheadHandle {
        AheadHandle { handle: Arc::new(handle), syncs: Arc::clone(&self.syncs) }
    }
}

impl FileSystem for AheadFiles {
    type Handle = AheadHandle;
    type Reader = SystemFile;
    type Writer = AheadFile;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<AheadHandle> {
        DefaultFileSystem.create(path).map(|handle| self.handle(handle))
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<AheadHandle> {
        DefaultFileSystem.open(path, permission).map(|handle| self.handle(handle))
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        DefaultFileSystem.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        DefaultFileSystem.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<AheadHandle>) -> io::Result<SystemFile> {
        DefaultFileSystem.new_reader(Arc::clone(&handle.handle))
    }

    fn new_writer(&self, handle: Arc<AheadHandle>) -> io::Result<AheadFile> {
        DefaultFileSystem.new_writer(Arc::clone(&handle.handle)).map(AheadFile)
    }
}

/// An open file.
pub(super) struct AheadHandle {
    handle: Arc<SystemHandle>,
    syncs: Arc<Syncs>,
}

impl Handle for AheadHandle {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        self.handle.truncate(offset)
    }

    fn file_size(&self) -> io::Result<usize> {
        self.handle.file_size()
    }

    fn sync(&self) -> io::Result<()> {
        self.syncs.note(|| self.handle.sync());
        Ok(())
    }
}

/// The end of a file that is written to.
pub(super) struct AheadFile(SystemFile);

impl WriteExt for AheadFile {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        self.0.truncate(offset)
    }

    /// Writes zeros from `offset`, the end of the file, and goes back to where it was.
    fn allocate(&mut self, offset: usize, size: usize) -> io::Result<()> {
        let here = self.0.stream_position()?;
        self.0.seek(SeekFrom::Start(offset as u64))?;
        let written = io::copy(&mut io::repeat(0).take(size as u64), &mut self.0);
        self.0.seek(SeekFrom::Start(here))?;
        written.map(drop)
    }
}

impl Write for AheadFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for AheadFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}
