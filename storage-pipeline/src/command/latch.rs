//! From keys to latch hashes. Transactional keys, raw keys and the pipeline's own two numbers never share a hash on
//! purpose, so a raw write does not wait for a transaction on the same bytes.

use std::hash::{DefaultHasher, Hasher};

const TXN: u8 = 0;
const RAW: u8 = 1;
const OWN: u8 = 2;

/// The hash of a transactional key, as the user gave it.
pub(super) fn txn(key: &[u8]) -> u64 {
    hash(TXN, key)
}

/// The hash of a raw key.
pub(super) fn raw(key: &[u8]) -> u64 {
    hash(RAW, key)
}

/// The hash of a number that the pipeline keeps for itself, such as the safe point.
pub(super) fn own(key: &[u8]) -> u64 {
    hash(OWN, key)
}

/// The hashes of a list of transactional keys.
pub(super) fn txn_keys(keys: &[Vec<u8>]) -> Vec<u64> {
    keys.iter().map(|key| txn(key)).collect()
}

/// Sorted and each once: everybody acquires in the same order, and nobody waits for himself.
pub(super) fn sorted(mut hashes: Vec<u64>) -> Box<[u64]> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into_boxed_slice()
}

fn hash(space: u8, key: &[u8]) -> u64 {
    // Its keys are fixed, so equal keys meet at equal hashes in every thread.
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(space);
    hasher.write(key);
    hasher.finish()
}
