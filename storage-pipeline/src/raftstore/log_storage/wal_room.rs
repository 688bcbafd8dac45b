//! Makes the file that RocksDB appends the raft log to longer in advance.
//!
//! A sync that changes a file's length waits for the file system's journal as well as for the data: about a third of
//! its time on ext4. RocksDB reserves blocks, but its file grows with every write. So zeros are written behind its
//! end, a stretch at a time, and RocksDB's next appends overwrite them in place. It keeps its own count of where it
//! is, cuts the file to that length when it closes it, and takes zeros for the end of the log when it reads it.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::wal::{self, BLOCK, HEADER};

/// Bytes that the file is made longer by at a time. The sync behind it writes them all, once in about 3,000 writes.
const STRETCH: usize = 512 << 10;

/// How much of the stretch is left.
#[derive(Debug)]
pub(super) struct WalRoom {
    dir: PathBuf,
    left: u64,
    works: bool,
}

impl WalRoom {
    pub(super) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), left: 0, works: true }
    }

    /// Called by the only writer before it writes a batch of so many bytes.
    pub(super) fn reserve(&mut self, bytes: u64) {
        let headers = (bytes / BLOCK as u64 + 2) * HEADER as u64;
        let needed = bytes + headers;
        // A longer write pays for its length anyway.
        if self.left < needed && needed <= STRETCH as u64 && self.works {
            self.left = STRETCH as u64;
            if let Err(error) = self.lengthen() {
                // It is slower without; a disk that is full or broken refuses the write itself.
                tracing::warn!("{}: writing ahead of the raft log failed: {error}", self.dir.display());
                self.works = false;
            }
        }
        self.left = self.left.saturating_sub(needed);
    }

    /// RocksDB writes while its one writer is inside a write, so nothing moves here. Its position is at or before the
    /// file's end, so no byte of it is touched.
    fn lengthen(&self) -> io::Result<()> {
        let Some(newest) = wal::files(&self.dir)?.pop() else { return Ok(()) };
        let mut file = File::options().append(true).open(newest)?;
        let end = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // Up to a whole block, because a header that is cut short is taken for a torn record.
        file.write_all(&vec![0; (end + STRETCH).next_multiple_of(BLOCK) - end])
    }
}
