//! One change of one key, and the bytes in which a proposal carries changes. Hands on what apply writes.

use super::Cf;
use crate::error::Error;

/// One change. A command's check returns a list of them; the raft log carries them; apply writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Modify {
    /// Sets a key.
    Put(Cf, Vec<u8>, Vec<u8>),
    /// Removes a key.
    Delete(Cf, Vec<u8>),
}

/// The first byte of an encoded list: the version of the encoding.
const VERSION: u8 = 1;
const TAG_PUT: u8 = 0;
const TAG_DELETE: u8 = 1;

impl Modify {
    /// The column family that is changed.
    #[must_use]
    pub const fn cf(&self) -> Cf {
        match self {
            Self::Put(cf, ..) | Self::Delete(cf, _) => *cf,
        }
    }

    /// The key that is changed.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Put(_, key, _) | Self::Delete(_, key) => key,
        }
    }

    fn encoded_len(&self) -> usize {
        match self {
            Self::Put(_, key, value) => 1 + 1 + 4 + key.len() + 4 + value.len(),
            Self::Delete(_, key) => 1 + 1 + 4 + key.len(),
        }
    }
}

/// Encodes a list of changes: version, then for each its tag, column family and length-prefixed key and value.
#[must_use]
pub fn encode(modifies: &[Modify]) -> Vec<u8> {
    let mut out = Vec::with_capacity(encoded_len(modifies));
    encode_into(&mut out, modifies);
    out
}

/// How many bytes a list takes.
pub(crate) fn encoded_len(modifies: &[Modify]) -> usize {
    1 + modifies.iter().map(Modify::encoded_len).sum::<usize>()
}

/// As [`encode`], behind what is there.
pub(crate) fn encode_into(out: &mut Vec<u8>, modifies: &[Modify]) {
    out.push(VERSION);
    for modify in modifies {
        match modify {
            Modify::Put(cf, key, value) => {
                out.extend([TAG_PUT, *cf as u8]);
                put_bytes(out, key);
                put_bytes(out, value);
            }
            Modify::Delete(cf, key) => {
                out.extend([TAG_DELETE, *cf as u8]);
                put_bytes(out, key);
            }
        }
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("keys and values are bounded far below 4 GiB at admission");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Decodes what [`encode`] wrote, calling `each` for every change in its order.
///
/// # Errors
/// [`Error::Corrupt`] when the bytes are not an encoded list. Changes before the fault were already handed to
/// `each`, so the caller must discard them.
pub fn decode(mut bytes: &[u8], mut each: impl FnMut(Modify)) -> Result<(), Error> {
    let [version] = take::<1>(&mut bytes)?;
    if version != VERSION {
        return Err(Error::Corrupt(format!("change list of unknown version {version}").into()));
    }
    while !bytes.is_empty() {
        let [tag, cf] = take::<2>(&mut bytes)?;
        let cf = Cf::from_u8(cf)
            .ok_or_else(|| Error::Corrupt(format!("unknown column family {cf} in a change").into()))?;
        each(match tag {
            TAG_PUT => Modify::Put(cf, take_bytes(&mut bytes)?, take_bytes(&mut bytes)?),
            TAG_DELETE => Modify::Delete(cf, take_bytes(&mut bytes)?),
            _ => return Err(Error::Corrupt(format!("unknown change tag {tag}").into())),
        });
    }
    Ok(())
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Error> {
    let (head, rest) = bytes.split_first_chunk::<N>().ok_or_else(truncated)?;
    *bytes = rest;
    Ok(*head)
}

fn take_bytes(bytes: &mut &[u8]) -> Result<Vec<u8>, Error> {
    let len = u32::from_le_bytes(take::<4>(bytes)?) as usize;
    let (head, rest) = bytes.split_at_checked(len).ok_or_else(truncated)?;
    *bytes = rest;
    Ok(head.to_vec())
}

fn truncated() -> Error {
    Error::Corrupt("a change list ends early".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn modify() -> impl Strategy<Value = Modify> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
        let cf = || (0u8..5).prop_map(|n| Cf::from_u8(n).unwrap());
        prop_oneof![
            (cf(), bytes(), bytes()).prop_map(|(cf, key, value)| Modify::Put(cf, key, value)),
            (cf(), bytes()).prop_map(|(cf, key)| Modify::Delete(cf, key)),
        ]
    }

    proptest! {
        #[test]
        fn decodes_what_was_encoded(modifies in proptest::collection::vec(modify(), 0..8)) {
            let mut decoded = Vec::new();
            decode(&encode(&modifies), |m| decoded.push(m)).unwrap();
            prop_assert_eq!(decoded, modifies);
        }

        #[test]
        fn every_proper_prefix_or_foreign_input_is_refused_or_shorter(
            modifies in proptest::collection::vec(modify(), 1..4), cut in any::<proptest::sample::Index>(),
        ) {
            let bytes = encode(&modifies);
            let cut = cut.index(bytes.len());
            let mut decoded = Vec::new();
            if decode(&bytes[..cut], |m| decoded.push(m)).is_ok() {
                prop_assert!(decoded.len() < modifies.len());
                prop_assert_eq!(&decoded[..], &modifies[..decoded.len()]);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, |_| ());
        }
    }
}
