//! What the data of an entry says: whose it is, and what it changes. Hands apply the changes, where they are its own.

use std::fmt;

use crate::{
    engine::{Modify, modify},
    error::{Error, InvalidCommand},
    region::RegionEpoch,
};

/// The first byte of an entry's data: the version of the encoding. A list of changes alone begins with another.
const VERSION: u8 = 2;
/// The version, and what says whose the entry is.
const HEADER: usize = 1 + 2 * size_of::<u64>();

/// Whose an entry is. It is proposed for a region as it is, and can be applied nowhere else. The members may be others by the
/// time when it is applied: which they are, the log decides (`Peer::propose`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Id of the region.
    pub region: u64,
    /// Which of its ranges its keys were looked up in ([`RegionEpoch::version`]).
    pub version: u64,
}

impl Owner {
    /// That of a region's entries. Its range does not change while a store runs.
    #[must_use]
    pub fn of(region: u64) -> Self {
        Self { region, version: RegionEpoch::default().version }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region {}, range {}", self.region, self.version)
    }
}

/// The data of an entry.
///
/// ```
/// use storage_pipeline::{engine::{Cf, Modify}, raftstore::entry::{self, Owner}};
/// let put = Modify::Put(Cf::Raw, b"key".to_vec(), b"value".to_vec());
/// let data = entry::encode(Owner::of(1), std::slice::from_ref(&put));
/// let mut changes = Vec::new();
/// entry::decode(Owner::of(1), &data, |change| changes.push(change))?;
/// assert_eq!(changes, [put]);
/// assert!(entry::decode(Owner::of(2), &data, |_| ()).is_err(), "it is another region's");
/// # Ok::<(), storage_pipeline::Error>(())
/// ```
#[must_use]
pub fn encode(owner: Owner, modifies: &[Modify]) -> Vec<u8> {
    encode_in(encoded_len(modifies), owner, modifies)
}

/// As [`encode`], where the log takes no entry of more than `limit` bytes.
///
/// # Errors
/// [`InvalidCommand::TooLarge`] where it would be larger, before anything is allocated for it.
pub(crate) fn encode_within(
    limit: usize,
    owner: Owner,
    modifies: &[Modify],
) -> Result<Vec<u8>, InvalidCommand> {
    let size = encoded_len(modifies);
    if size > limit {
        return Err(InvalidCommand::TooLarge { field: "entry".into(), size, limit });
    }
    Ok(encode_in(size, owner, modifies))
}

fn encode_in(size: usize, Owner { region, version }: Owner, modifies: &[Modify]) -> Vec<u8> {
    let mut out = Vec::with_capacity(size);
    out.push(VERSION);
    out.extend_from_slice(&region.to_le_bytes());
    out.extend_from_slice(&version.to_le_bytes());
    modify::encode_into(&mut out, modifies);
    out
}

fn encoded_len(modifies: &[Modify]) -> usize {
    HEADER + modify::encoded_len(modifies)
}

/// Decodes what [`encode`] wrote for the same owner, calling `each` for every change in its order.
///
/// # Errors
/// [`Error::Corrupt`] where the data is another owner's, or no entry's. As with [`modify::decode`], some changes may
/// have been handed to `each` before the fault.
pub fn decode(owner: Owner, data: &[u8], each: impl FnMut(Modify)) -> Result<(), Error> {
    let (header, changes) = data.split_first_chunk::<HEADER>().ok_or_else(|| corrupt("it ends early"))?;
    let [VERSION, numbers @ ..] = header else {
        return Err(corrupt(format_args!("its version is {}", header[0])));
    };
    let ([region, version], []) = numbers.as_chunks() else {
        unreachable!("two numbers are as long as two numbers")
    };
    let named = Owner { region: u64::from_le_bytes(*region), version: u64::from_le_bytes(*version) };
    if named != owner {
        return Err(corrupt(format_args!("it is of {named}, and this is {owner}")));
    }
    modify::decode(changes, each)
}

fn corrupt(why: impl fmt::Display) -> Error {
    Error::Corrupt(format!("an entry cannot be applied: {why}").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Cf;
    use proptest::prelude::*;

    fn owner() -> impl Strategy<Value = Owner> {
        (0u64..4, 0u64..3).prop_map(|(region, version)| Owner { region, version })
    }

    proptest! {
        #[test]
        fn an_entry_is_for_its_owner_and_nobody_else(
            (of, by) in (owner(), owner()), keys in proptest::collection::vec(any::<Vec<u8>>(), 0..4),
        ) {
            let changes: Vec<_> = keys.into_iter().map(|key| Modify::Delete(Cf::Raw, key)).collect();
            let data = encode(of, &changes);
            let mut decoded = Vec::new();
            let taken = decode(by, &data, |change| decoded.push(change));
            if of == by {
                taken.unwrap();
                prop_assert_eq!(decoded, changes);
            } else {
                prop_assert!(matches!(taken, Err(Error::Corrupt(_))));
                prop_assert!(decoded.is_empty());
            }
        }

        #[test]
        fn an_entry_is_as_large_as_the_limit_and_no_larger(
            of in owner(), pairs in proptest::collection::vec(any::<(Vec<u8>, Option<Vec<u8>>)>(), 0..4),
        ) {
            let change = |(key, value)| match value {
                Some(value) => Modify::Put(Cf::Raw, key, value),
                None => Modify::Delete(Cf::Raw, key),
            };
            let changes: Vec<_> = pairs.into_iter().map(change).collect();
            let data = encode(of, &changes);
            let (size, limit) = (data.len(), data.len() - 1);
            let too_large = InvalidCommand::TooLarge { field: "entry".into(), size, limit };
            prop_assert_eq!(encode_within(size, of, &changes), Ok(data));
            prop_assert_eq!(encode_within(limit, of, &changes), Err(too_large));
        }

        #[test]
        fn what_is_no_entry_is_refused(bytes in any::<Vec<u8>>(), cut in 0..HEADER) {
            let _ = decode(Owner::of(1), &bytes, |_| ());
            let whole = encode(Owner::of(1), &[]);
            prop_assert!(matches!(decode(Owner::of(1), &whole[..cut], |_| ()), Err(Error::Corrupt(_))));
            let list = [modify::encode(&[]), vec![0; HEADER]].concat();
            prop_assert!(matches!(decode(Owner::of(1), &list, |_| ()), Err(Error::Corrupt(_))));
        }
    }
}
