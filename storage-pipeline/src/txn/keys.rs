//! Keys as they are stored: user bytes that keep their order with a timestamp behind them. Hands on encoded keys.
//!
//! A user key is cut into groups of eight bytes, the last one padded with zeros, and each group is followed by a
//! byte that says how many of its eight are real (as in MyRocks and TiKV). So no encoded key is the beginning of
//! another one, and whatever is appended never disturbs the order of the keys. A timestamp is appended inverted and
//! big-endian: of one key's versions the newest comes first.

use crate::error::Error;

const GROUP_BYTES: usize = 8;
/// The byte after a full group. A last group with `n` bytes of padding has `FULL_GROUP - n`.
const FULL_GROUP: u8 = 0xff;
/// Bytes of an appended timestamp.
pub const TS_BYTES: usize = 8;

/// An encoded user key, without a timestamp.
///
/// ```
/// use storage_pipeline::txn::Key;
/// let key = Key::from_raw(b"account/7");
/// assert_eq!(key.to_raw()?, b"account/7");
/// assert!(key.append_ts(20) < key.append_ts(10), "newest first");
/// # Ok::<(), storage_pipeline::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    /// Encodes a key as the user gave it.
    #[must_use]
    pub fn from_raw(raw: &[u8]) -> Self {
        let groups = raw.len() / GROUP_BYTES + 1;
        let mut encoded = Vec::with_capacity(groups * (GROUP_BYTES + 1));
        let (full, rest) = raw.as_chunks::<GROUP_BYTES>();
        for group in full {
            encoded.extend_from_slice(group);
            encoded.push(FULL_GROUP);
        }
        // A key that fills its last group gets an empty one, so that the end is always marked.
        let padding = GROUP_BYTES - rest.len();
        encoded.extend_from_slice(rest);
        encoded.extend_from_slice(&[0; GROUP_BYTES][..padding]);
        encoded.push(FULL_GROUP - padding as u8);
        Self(encoded)
    }

    /// A key that is encoded already, such as the front of a stored one.
    #[must_use]
    pub fn from_encoded(encoded: &[u8]) -> Self {
        Self(encoded.to_vec())
    }

    /// The encoded bytes.
    #[must_use]
    pub fn as_encoded(&self) -> &[u8] {
        &self.0
    }

    /// The encoded bytes, given away.
    #[must_use]
    pub fn into_encoded(self) -> Vec<u8> {
        self.0
    }

    /// The key as the user gave it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the bytes are not an encoded key.
    pub fn to_raw(&self) -> Result<Vec<u8>, Error> {
        decode(&self.0)
    }

    /// The stored key of this key's version at `ts`.
    #[must_use]
    pub fn append_ts(&self, ts: u64) -> Vec<u8> {
        let mut stored = Vec::with_capacity(self.0.len() + TS_BYTES);
        stored.extend_from_slice(&self.0);
        stored.extend_from_slice(&(!ts).to_be_bytes());
        stored
    }

    /// A stored key that lies behind all versions of this key and before every other key's.
    #[must_use]
    pub fn after_versions(&self) -> Vec<u8> {
        let mut after = self.append_ts(0);
        after.push(0);
        after
    }
}

/// Splits a stored key into the encoded user key and the timestamp.
///
/// # Errors
/// [`Error::Corrupt`] when it is too short.
pub fn split_ts(stored: &[u8]) -> Result<(&[u8], u64), Error> {
    let (key, ts) = stored
        .split_last_chunk::<TS_BYTES>()
        .ok_or_else(|| Error::Corrupt("a stored key has no timestamp".into()))?;
    Ok((key, !u64::from_be_bytes(*ts)))
}

/// The user's bytes of an encoded key.
///
/// # Errors
/// [`Error::Corrupt`] when the bytes are not an encoded key.
pub fn decode(encoded: &[u8]) -> Result<Vec<u8>, Error> {
    let corrupt = || Error::Corrupt("a stored key is not encoded as one".into());
    let (groups, []) = encoded.as_chunks::<{ GROUP_BYTES + 1 }>() else {
        return Err(corrupt());
    };
    let (last, full) = groups.split_last().ok_or_else(corrupt)?;
    let mut raw = Vec::with_capacity(groups.len() * GROUP_BYTES);
    for [group @ .., mark] in full {
        if *mark != FULL_GROUP {
            return Err(corrupt());
        }
        raw.extend_from_slice(group);
    }
    let [group @ .., mark] = last;
    let padding = usize::from(FULL_GROUP - mark);
    let real = GROUP_BYTES.checked_sub(padding).filter(|real| *real < GROUP_BYTES).ok_or_else(corrupt)?;
    if group[real..].iter().any(|byte| *byte != 0) {
        return Err(corrupt());
    }
    raw.extend_from_slice(&group[..real]);
    Ok(raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes that meet at group ends and differ in zeros and in the marks' values.
    fn raw() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xf7), Just(0xff), any::<u8>()], 0..20)
    }

    proptest! {
        #[test]
        fn order_survives_the_encoding_and_timestamps_never_disturb_it(
            a in raw(), b in raw(), ts_a: u64, ts_b: u64,
        ) {
            let (key_a, key_b) = (Key::from_raw(&a), Key::from_raw(&b));
            prop_assert_eq!(key_a.cmp(&key_b), a.cmp(&b));
            let expected = a.cmp(&b).then(ts_b.cmp(&ts_a));
            prop_assert_eq!(key_a.append_ts(ts_a).cmp(&key_b.append_ts(ts_b)), expected);
            prop_assert!(key_a.append_ts(ts_a) < key_a.after_versions());
            if a < b {
                prop_assert!(key_a.after_versions() < key_b.append_ts(ts_b));
                prop_assert!(!key_b.as_encoded().starts_with(key_a.as_encoded()));
            }
        }

        #[test]
        fn decodes_what_was_encoded(a in raw(), ts: u64) {
            let key = Key::from_raw(&a);
            let stored = key.append_ts(ts);
            prop_assert_eq!(split_ts(&stored).unwrap(), (key.as_encoded(), ts));
            prop_assert_eq!(key.to_raw().unwrap(), a);
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_are_the_encoding(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = split_ts(&bytes);
            if let Ok(raw) = decode(&bytes) {
                prop_assert_eq!(Key::from_raw(&raw).into_encoded(), bytes);
            }
        }

        #[test]
        fn a_spoilt_byte_is_refused_or_names_another_key(a in raw(), at: proptest::sample::Index, with: u8) {
            let mut encoded = Key::from_raw(&a).as_encoded().to_vec();
            let at = at.index(encoded.len());
            encoded[at] = with;
            if let Ok(raw) = decode(&encoded) {
                prop_assert_eq!(Key::from_raw(&raw).into_encoded(), encoded);
            }
        }
    }
}
