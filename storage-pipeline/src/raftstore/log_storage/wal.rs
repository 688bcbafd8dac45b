//! A look through RocksDB's write-ahead log before RocksDB opens it: is everything whole, is the last write torn, or
//! is something damaged that was whole once? Reads only.
//!
//! A file is cut into blocks of 32 KiB. A record is a header (checksum, length, type) and its bytes; one that does not
//! fit into its block continues in the next one. A record's bytes are a write batch, which begins with the sequence
//! number of its first change and the number of its changes. Behind the last record there may be zeros, where the file
//! was made longer in advance.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::error::OpenError;

pub(super) const BLOCK: usize = 32 << 10;
pub(super) const HEADER: usize = 7;
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// How a write-ahead log ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// With a whole record.
    Clean,
    /// With a torn one.
    Torn {
        /// The file.
        file: PathBuf,
        /// Where in the file the torn record begins.
        at: usize,
    },
}

/// Looks through the files of a directory, oldest first.
///
/// # Errors
/// A bad record with a good one behind it; files that cannot be read.
pub(super) fn look_through(dir: &Path) -> Result<Tail, OpenError> {
    let mut tail = Tail::Clean;
    let mut next = 0;
    for file in files(dir).map_err(|source| OpenError::Io { path: dir.to_owned(), source })? {
        let bytes = fs::read(&file).map_err(|source| OpenError::Io { path: file.clone(), source })?;
        let whole = Whole::of(&bytes, next);
        // An earlier recovery that dropped the torn write and died before it deleted the file goes on where it was.
        if let (Tail::Torn { file: path, at }, Some(first)) = (&tail, whole.first)
            && first > next
        {
            let what = format!("the record at byte {at} is damaged, and {} goes on after it", file.display());
            return Err(OpenError::Corrupt { path: path.clone(), what });
        }
        next = whole.next;
        let rest = &bytes[whole.end..];
        if rest.iter().all(|byte| *byte == 0) {
            continue;
        }
        if let Some(later) = later_write(&bytes, &whole) {
            let what =
                format!("the record at byte {} is damaged, and a whole one follows at {later}", whole.end);
            return Err(OpenError::Corrupt { path: file, what });
        }
        if tail == Tail::Clean {
            tail = Tail::Torn { file, at: whole.end };
        }
    }
    Ok(tail)
}

/// The files of the write-ahead log, oldest first.
pub(super) fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        if let Some(number) = number.filter(|_| path.extension().is_some_and(|extension| extension == "log"))
        {
            files.push((number, path));
        }
    }
    files.sort_unstable();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// The part of a file that consists of whole writes.
struct Whole {
    end: usize,
    /// Sequence number of the first write.
    first: Option<u64>,
    /// Sequence number that the write after the last one has.
    next: u64,
}

impl Whole {
    fn of(bytes: &[u8], next: u64) -> Self {
        let mut whole = Self { end: 0, first: None, next };
        let mut at = 0;
        // The write whose first part was read.
        let mut begun = None;
        loop {
            if BLOCK - at % BLOCK < HEADER {
                at = at.next_multiple_of(BLOCK);
            }
            let Some(record) = Record::at(bytes, at) else { break };
            at = record.end;
            let ended = match (record.kind, begun) {
                (FIRST, None) => {
                    begun = Some(record.batch);
                    continue;
                }
                (MIDDLE, Some(_)) => continue,
                (LAST, Some(batch)) => batch,
                (FULL, None) => record.batch,
                (FULL | FIRST | MIDDLE | LAST, _) => break,
                // A kind of a later RocksDB, which stands by itself.
                (_, _) => None,
            };
            (whole.end, begun) = (at, None);
            if let Some(batch) = ended {
                whole.first = whole.first.or(Some(batch.sequence));
                whole.next = batch.sequence.saturating_add(u64::from(batch.count));
            }
        }
        whole
    }
}

/// Where a whole write begins behind the damage. Lengths there cannot be trusted, so every byte is tried. A later
/// write has a later sequence number, which bytes that only look like a record hardly have.
fn later_write(bytes: &[u8], whole: &Whole) -> Option<usize> {
    (whole.end + 1..bytes.len()).find(|at| {
        let begins = bytes.get(at + 6).is_some_and(|kind| [FULL, FIRST].contains(kind));
        let batch = if begins { Batch::at(bytes, at + HEADER) } else { None };
        let is_later =
            |batch: Batch| batch.sequence.checked_sub(whole.next).is_some_and(|ahead| ahead < 1 << 32);
        batch.is_some_and(is_later) && Record::at(bytes, *at).is_some()
    })
}

struct Record {
    kind: u8,
    /// The head of the write that begins here.
    batch: Option<Batch>,
    end: usize,
}

impl Record {
    /// The record that begins at a byte, where it is whole.
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let header = bytes.get(at..)?.first_chunk::<HEADER>()?;
        let [c0, c1, c2, c3, low, high, kind] = *header;
        let end = at + HEADER + usize::from(u16::from_le_bytes([low, high]));
        let in_block = end <= (at / BLOCK + 1) * BLOCK;
        let empty = kind == 0 && end == at + HEADER;
        let checked = bytes.get(at + 6..end).filter(|_| in_block && !empty)?;
        let whole = unmask(u32::from_le_bytes([c0, c1, c2, c3])) == crc32c(checked);
        whole.then(|| Self { kind, batch: Batch::at(&bytes[..end], at + HEADER), end })
    }
}

/// The head of a write batch.
#[derive(Clone, Copy)]
struct Batch {
    sequence: u64,
    count: u32,
}

impl Batch {
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let (sequence, rest) = bytes.get(at..)?.split_first_chunk()?;
        let count = rest.first_chunk()?;
        Some(Self { sequence: u64::from_le_bytes(*sequence), count: u32::from_le_bytes(*count) })
    }
}

/// Undoes what RocksDB does to a checksum, so that a checksum of checksums is not a special case.
const fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}

/// The checksum of Castagnoli, a byte at a time: hundreds of megabytes a second, enough for one write buffer.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.iter().fold(!0, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
#[path = "wal_tests.rs"]
mod tests;
