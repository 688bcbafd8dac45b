//! What every command knows of itself. `Command` hands each of its calls on to this.

use super::Processed;
use crate::{
    config::Config,
    engine::Snapshot,
    error::{Error, InvalidCommand},
};

/// What a key, a value or a command costs in memory besides its bytes.
const ITEM_BYTES: usize = 32;

/// One kind of command. `Command` documents the methods.
pub(super) trait Execute: Sized {
    /// Whether it only reads.
    const IS_READ: bool = false;

    /// Whether [`process_blind`](Self::process_blind) is all there is to do.
    const IS_BLIND: bool = false;

    fn validate(&self, config: &Config) -> Result<(), InvalidCommand>;

    /// Hashes of the keys it latches, in any order.
    fn latches(&self) -> Vec<u64> {
        Vec::new()
    }

    /// The keys that it names, as the user gave them, for whoever wants to know whose they are.
    fn for_each_key(&self, _each: &mut dyn FnMut(&[u8])) {}

    /// The range of keys that it reads, where it reads one. An empty end means no bound.
    fn key_range(&self) -> Option<(&[u8], &[u8])> {
        None
    }

    fn size_bytes(&self) -> usize;

    fn process_blind(self) -> Result<Processed, Self> {
        Err(self)
    }

    fn process(self, snapshot: &dyn Snapshot) -> Result<Processed, Error>;
}

/// The size of a command with these keys and values.
pub(super) fn size_of<'a>(items: impl IntoIterator<Item = &'a [u8]>) -> usize {
    items.into_iter().fold(ITEM_BYTES, |sum, item| sum.saturating_add(ITEM_BYTES).saturating_add(item.len()))
}

/// The size of a command with a list of keys.
pub(super) fn size_of_keys(keys: &[Vec<u8>]) -> usize {
    size_of(keys.iter().map(Vec::as_slice))
}

/// What a list of timestamps adds to a command.
pub(super) fn size_of_timestamps(timestamps: &[u64]) -> usize {
    std::mem::size_of_val(timestamps)
}
