//! The bytes of an entry, of the hard state and of a place in the log. Every field is named here, so that a raft with
//! more of them does not compile before somebody has thought about what is on disk.

use raft::eraftpb::{Entry, EntryType, HardState};

use super::Position;
use crate::engine::EngineError;

/// Appends an entry without its index, which is in its key: type, term, length of the context, context, data.
pub(super) fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    // `sync_log` is a leftover of old versions of raft, which nothing sets and nothing reads.
    let Entry { entry_type, term, index: _, data, context, sync_log: _ } = entry;
    let kind = u8::try_from(*entry_type).expect("raft has three types of entries");
    let context_len = u32::try_from(context.len()).expect("a proposal is far shorter than 4 GiB");
    out.push(kind);
    out.extend_from_slice(&term.to_le_bytes());
    out.extend_from_slice(&context_len.to_le_bytes());
    out.extend_from_slice(context);
    out.extend_from_slice(data);
}

/// The entry at `index` that [`put_entry`] wrote.
pub(super) fn take_entry(index: u64, mut bytes: &[u8]) -> Result<Entry, EngineError> {
    let bad = || EngineError::new(format!("entry {index} of the raft log cannot be decoded"));
    let [kind] = take(&mut bytes).ok_or_else(bad)?;
    let term = take(&mut bytes).map(u64::from_le_bytes).ok_or_else(bad)?;
    let context_len = take(&mut bytes).map(u32::from_le_bytes).ok_or_else(bad)?;
    let (context, data) = bytes.split_at_checked(context_len as usize).ok_or_else(bad)?;
    let entry_type = EntryType::from_i32(i32::from(kind)).ok_or_else(bad)? as i32;
    let (data, context) = (data.to_vec(), context.to_vec());
    Ok(Entry { entry_type, term, index, data, context, sync_log: false })
}

/// The bytes of a hard state.
pub(super) fn hard_state(state: &HardState) -> [u8; 24] {
    let HardState { term, vote, commit } = state;
    let mut bytes = [0; 24];
    for (to, from) in bytes.chunks_exact_mut(8).zip([term, vote, commit]) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    bytes
}

/// The hard state that [`hard_state`] wrote.
pub(super) fn take_hard_state(bytes: &[u8]) -> Result<HardState, EngineError> {
    let [term, vote, commit] =
        numbers(bytes).ok_or_else(|| EngineError::new("the hard state cannot be decoded"))?;
    Ok(HardState { term, vote, commit })
}

/// The bytes of a place in the log.
pub(super) fn position(position: Position) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&position.index.to_le_bytes());
    bytes[8..].copy_from_slice(&position.term.to_le_bytes());
    bytes
}

/// The place that [`position`] wrote.
pub(super) fn take_position(bytes: &[u8]) -> Result<Position, EngineError> {
    let bad = || EngineError::new("the place where the raft log is truncated cannot be decoded");
    let [index, term] = numbers(bytes).ok_or_else(bad)?;
    Ok(Position { index, term })
}

fn numbers<const N: usize>(mut bytes: &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u64::from_le_bytes(take(&mut bytes)?);
    }
    bytes.is_empty().then_some(numbers)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_entry_comes_back_as_it_was(
            kind in 0..3i32, term: u64, index: u64,
            data in proptest::collection::vec(any::<u8>(), 0..40), context in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let entry = Entry { entry_type: kind, term, index, data, context, sync_log: false };
            let mut bytes = Vec::new();
            put_entry(&mut bytes, &entry);
            prop_assert_eq!(take_entry(index, &bytes).unwrap(), entry);
        }

        #[test]
        fn states_come_back_as_they_were(term: u64, vote: u64, commit: u64) {
            let state = HardState { term, vote, commit };
            prop_assert_eq!(take_hard_state(&hard_state(&state)).unwrap(), state);
            let place = Position { index: commit, term };
            prop_assert_eq!(take_position(&position(place)).unwrap(), place);
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Err(error) = take_entry(7, &bytes) {
                prop_assert!(error.to_string().contains("entry 7"));
            }
            prop_assert_eq!(take_hard_state(&bytes).is_ok(), bytes.len() == 24);
            prop_assert_eq!(take_position(&bytes).is_ok(), bytes.len() == 16);
        }
    }
}
