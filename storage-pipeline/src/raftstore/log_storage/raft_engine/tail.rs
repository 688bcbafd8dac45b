//! A look through raft-engine's files before it opens them: is the newest one damaged where a whole record follows?
//! Reads only.
//!
//! A file begins with a magic word, its version and an alignment. A record is a header (length and compression, place
//! of its footer), the entries with a checksum of their own, and the footer: what the record does, and a checksum that
//! is signed with the file's number, so that what a file held before it was used again is not taken for records.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crc32fast::hash as crc32;

use crate::error::OpenError;

/// Magic word, version 2, no alignment.
pub(super) const FILE_HEADER: &[u8; 69] =
    b"RAFT-LOG-FILE-HEADER-9986AB3E47F320B394C8E84916EB0ED5\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0";
pub(super) const HEADER: usize = 16;
const CHECKSUM: usize = 4;

/// Looks through the files of a directory. In every file but the newest the engine itself tolerates nothing.
///
/// # Errors
/// A bad record with a good one behind it; files that cannot be read.
pub(super) fn look_through(dir: &Path) -> Result<(), OpenError> {
    for suffix in ["raftlog", "rewrite"] {
        let files = files(dir, suffix).map_err(|source| OpenError::Io { path: dir.to_owned(), source })?;
        let newest = files.len().saturating_sub(1);
        for (at, (number, path)) in files.into_iter().enumerate() {
            let bytes = fs::read(&path).map_err(|source| OpenError::Io { path: path.clone(), source })?;
            let signature = number as u32;
            let end = whole(&bytes, signature);
            let later = later_record(&bytes, end, signature);
            let lost = at < newest && end < bytes.len();
            let what = match later {
                Some(later) => {
                    format!("the record at byte {end} is damaged, and a whole one follows at {later}")
                }
                None if lost => format!("the record at byte {end} is damaged, and a later file follows"),
                None => continue,
            };
            return Err(OpenError::Corrupt { path, what });
        }
    }
    Ok(())
}

/// The files of one queue with their numbers, oldest first.
pub(super) fn files(dir: &Path, suffix: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        if let Some(number) = number.filter(|_| path.extension().is_some_and(|found| found == suffix)) {
            files.push((number, path));
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Where the whole records of a file end.
pub(super) fn whole(bytes: &[u8], signature: u32) -> usize {
    // A file that died before its header was whole holds nothing.
    let mut end = if bytes.starts_with(FILE_HEADER) { FILE_HEADER.len() } else { 0 };
    while let Some(next) = record(bytes, end, signature).filter(|_| end > 0) {
        end = next;
    }
    end
}

/// Where a whole record begins behind the damage. Lengths there cannot be trusted, so every byte is tried.
fn later_record(bytes: &[u8], end: usize, signature: u32) -> Option<usize> {
    (end + 1..bytes.len()).find(|at| record(bytes, *at, signature).is_some())
}

/// Where the record that begins at a byte ends, where it is whole.
fn record(bytes: &[u8], at: usize, signature: u32) -> Option<usize> {
    let (length, rest) = bytes.get(at..)?.split_first_chunk::<8>()?;
    let (length, footer) = (u64::from_be_bytes(*length), u64::from_be_bytes(*rest.first_chunk()?));
    // The lowest byte says how the entries are compressed, which no checksum covers. Here it is not at all.
    let length = usize::try_from(length >> 8).ok().filter(|_| length & 0xff == 0)?;
    let footer = usize::try_from(footer).ok()?;
    let end = at.checked_add(length)?;
    if end > bytes.len() || footer < HEADER || footer.checked_add(CHECKSUM)? >= length {
        return None;
    }
    let entries = &bytes[at + HEADER..at + footer];
    let is_whole =
        checked(&bytes[at + footer..end], signature) && (entries.is_empty() || checked(entries, 0));
    is_whole.then_some(end)
}

/// Whether bytes end with the checksum of what is before it.
fn checked(bytes: &[u8], signature: u32) -> bool {
    let Some((content, checksum)) = bytes.split_last_chunk::<CHECKSUM>() else { return false };
    u32::from_le_bytes(*checksum) ^ signature == crc32(content)
}
