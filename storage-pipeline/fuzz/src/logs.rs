//! Write-ahead logs that were damaged in several places at once. What the look through them says is compared with what is
//! known of the damage: nothing that is whole behind it is ever dropped without a word.

#[path = "../../src/raftstore/log_storage/raft_engine/tail.rs"]
mod tail;
#[path = "../../src/raftstore/log_storage/wal.rs"]
mod wal;

use std::{fs, ops::Range, path::Path};

use storage_pipeline::OpenError;

/// The bytes of a log, where each of its writes lies, and where the first record of each.
struct Log {
    bytes: Vec<u8>,
    writes: Vec<(Range<usize>, Range<usize>)>,
}

/// Makes a log of one kind or the other, damages it, and looks through it. Returns whether it is refused.
///
/// # Panics
/// If the look says anything else than what is known of the damage.
pub fn run(input: &[u8]) -> bool {
    let Some(([kind, count, of_size @ ..], damage)) = input.split_first_chunk::<8>() else { return false };
    let sizes = of_size.iter().cycle().take(usize::from(count % 8));
    let is_engine = kind % 2 == 1;
    let log = if is_engine { raft_engine(sizes) } else { rocksdb(sizes) };
    let damaged = damage_of(&log.bytes, damage);
    let dir = tempfile::tempdir().expect("the temporary directory takes a file");
    let name = if is_engine { "0000000000000001.raftlog" } else { "000001.log" };
    fs::write(dir.path().join(name), &damaged).expect("the temporary directory takes a file");
    let is_whole = |span: &Range<usize>| damaged.get(span.clone()) == Some(&log.bytes[span.clone()]);
    let first_bad = log.writes.iter().position(|(write, _)| !is_whole(write));
    let rest = first_bad.map(|bad| log.writes[bad + 1..].iter());
    let is_hole = rest.is_some_and(|mut rest| rest.any(|(_, first)| is_whole(first)));
    let found = look(dir.path(), is_engine);
    assert_eq!(matches!(found, Err(OpenError::Corrupt { .. })), is_hole, "{found:?}");
    if let (Ok(Some(at)), Some(bad)) = (found, first_bad) {
        assert_eq!(at, log.writes[bad].0.start, "it is cut where the damage begins");
    }
    is_hole
}

/// Looks through a log, and says where it is torn.
fn look(dir: &Path, is_engine: bool) -> Result<Option<usize>, OpenError> {
    if is_engine {
        return tail::look_through(dir).map(|()| None);
    }
    wal::look_through(dir).map(|tail| match tail {
        wal::Tail::Clean => None,
        wal::Tail::Torn { at, .. } => Some(at),
    })
}

/// A write-ahead log as RocksDB writes one. A size over 240 makes a write that does not fit into its block.
fn rocksdb<'a>(sizes: impl Iterator<Item = &'a u8>) -> Log {
    const FRAME: usize = wal::HEADER;
    let mut log = Log { bytes: Vec::new(), writes: Vec::new() };
    let mut sequence = 1u64;
    for size in sizes {
        let length = if *size > 240 { usize::from(*size) * 300 } else { usize::from(*size) };
        let mut batch = sequence.to_le_bytes().to_vec();
        batch.extend(1u32.to_le_bytes());
        batch.extend((0..length).map(|at| at as u8 | 1));
        let (mut rest, mut spans) = (batch.as_slice(), Vec::new());
        while spans.is_empty() || !rest.is_empty() {
            let left = wal::BLOCK - log.bytes.len() % wal::BLOCK;
            if left < FRAME {
                log.bytes.resize(log.bytes.len() + left, 0);
                continue;
            }
            let (part, after) = rest.split_at(rest.len().min(left - FRAME));
            let kind = match (spans.is_empty(), after.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            let begin = log.bytes.len();
            let checked = [&[kind], part].concat();
            log.bytes.extend(masked(crc32c(&checked)).to_le_bytes());
            log.bytes.extend((part.len() as u16).to_le_bytes());
            log.bytes.extend(checked);
            spans.push(begin..log.bytes.len());
            rest = after;
        }
        log.writes.push((spans[0].start..log.bytes.len(), spans[0].clone()));
        sequence += 1;
    }
    log
}

/// The checksum of Castagnoli, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A log as raft-engine writes one.
fn raft_engine<'a>(sizes: impl Iterator<Item = &'a u8>) -> Log {
    // Without its head a file holds nothing.
    let head = 0..tail::FILE_HEADER.len();
    let mut log = Log { bytes: tail::FILE_HEADER.to_vec(), writes: vec![(head.clone(), head)] };
    for size in sizes {
        let with_sum = |bytes: Vec<u8>, signature: u32| {
            let sum = crc32fast::hash(&bytes) ^ signature;
            [bytes, sum.to_le_bytes().to_vec()].concat()
        };
        let entries = match size {
            0 => Vec::new(),
            _ => with_sum((0..usize::from(*size) * 3).map(|at| at as u8 | 1).collect(), 0),
        };
        let footer = with_sum(vec![*size | 1; 9], 1);
        let begin = log.bytes.len();
        let length = (tail::HEADER + entries.len() + footer.len()) as u64;
        log.bytes.extend((length << 8).to_be_bytes());
        log.bytes.extend((tail::HEADER as u64 + entries.len() as u64).to_be_bytes());
        log.bytes.extend(entries);
        log.bytes.extend(footer);
        let span = begin..log.bytes.len();
        log.writes.push((span.clone(), span));
    }
    log
}

/// Flips bits, writes zeros and cuts, as four bytes each say: where in thousandths of the length, and what.
fn damage_of(bytes: &[u8], damage: &[u8]) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for [high, low, kind, length] in damage.as_chunks::<4>().0 {
        let at = usize::from(u16::from_be_bytes([*high, *low])) * bytes.len() / (1 << 16);
        let end = damaged.len().min(at + 1 + usize::from(*length));
        match kind % 8 {
            0 => damaged.truncate(at),
            1 => damaged[at.min(end)..end].fill(0),
            2 => damaged.resize(damaged.len() + usize::from(*length), 0),
            bit => damaged[at.min(end)..end].iter_mut().take(1).for_each(|byte| *byte ^= 1 << bit),
        }
    }
    damaged
}
