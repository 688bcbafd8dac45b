//! Raw keys and timestamps.

use proptest::prelude::*;

use crate::{
    Error, InvalidCommand,
    command::{
        AllocateTimestamps, CompareAndSwapResult, KvPair, RawCompareAndSwap, RawDelete, RawGet, RawPut,
        RawScan, TimestampRange, testing::*,
    },
};

#[test]
fn raw_keys_and_transactional_keys_do_not_meet() {
    let store = Store::default();
    store.run(RawPut { key: b"k".to_vec(), value: b"raw".to_vec() }).unwrap();
    store.must_write(10, 15, vec![put("k", "txn")]);
    assert_eq!(store.run(RawGet { key: b"k".to_vec() }).unwrap(), Some(b"raw".to_vec()));
    store.run(RawDelete { key: b"k".to_vec() }).unwrap();
    assert_eq!(store.run(RawGet { key: b"k".to_vec() }).unwrap(), None);
    assert_eq!(store.must_get("k", 15), Some(b"txn".to_vec()));
}

#[test]
fn a_swap_needs_the_expected_value_and_tells_the_one_it_found() {
    let store = Store::default();
    let swap = |previous: Option<&str>, value: &str| {
        let previous = previous.map(|value| value.as_bytes().to_vec());
        store.run(RawCompareAndSwap { key: b"k".to_vec(), previous, value: value.into() }).unwrap()
    };
    let found = |succeeded, previous: Option<&str>| CompareAndSwapResult {
        succeeded,
        previous: previous.map(|value| value.as_bytes().to_vec()),
    };
    assert_eq!(swap(Some(""), "1"), found(false, None), "an empty value is not an absent one");
    assert_eq!(swap(None, ""), found(true, None));
    assert_eq!(swap(None, "2"), found(false, Some("")));
    assert_eq!(swap(Some(""), "2"), found(true, Some("")));
    assert_eq!(swap(Some("2"), "3"), found(true, Some("2")));
    assert_eq!(store.run(RawGet { key: b"k".to_vec() }).unwrap(), Some(b"3".to_vec()));
}

#[test]
fn timestamps_are_never_given_twice_and_never_run_out_silently() {
    let store = Store::default();
    let allocate = |at_least, window| store.run(AllocateTimestamps { at_least, window });
    assert_eq!(allocate(0, 10), Ok(TimestampRange { first: 1, limit: 11 }));
    assert_eq!(allocate(5, 10), Ok(TimestampRange { first: 11, limit: 21 }));
    assert_eq!(allocate(100, 1), Ok(TimestampRange { first: 100, limit: 101 }));
    assert_eq!(allocate(50, 1), Ok(TimestampRange { first: 101, limit: 102 }));
    let last = u64::MAX - 2;
    assert_eq!(allocate(last, 2), Ok(TimestampRange { first: last, limit: u64::MAX }));
    let none_left = allocate(0, 1);
    assert!(matches!(
        none_left,
        Err(Error::InvalidCommand(InvalidCommand::OutOfRange { field, .. })) if field == "window"
    ));
}

proptest! {
    #[test]
    fn scans_agree_with_a_sorted_map(
        model in proptest::collection::btree_map(
            proptest::collection::vec(0u8..3, 1..4), proptest::collection::vec(any::<u8>(), 0..3), 0..12),
        start_key in proptest::collection::vec(0u8..3, 0..4),
        end_key in proptest::collection::vec(0u8..3, 0..4),
        limit in 1usize..6, reverse: bool, key_only: bool,
    ) {
        let store = Store::default();
        for (key, value) in &model {
            store.run(RawPut { key: key.clone(), value: value.clone() }).unwrap();
        }
        let is_inside = |key: &Vec<u8>| *key >= start_key && (end_key.is_empty() || *key < end_key);
        let mut expected: Vec<_> = model
            .iter()
            .filter(|(key, _)| is_inside(key))
            .map(|(key, value)| {
                KvPair { key: key.clone(), value: if key_only { vec![] } else { value.clone() } }
            })
            .collect();
        if reverse { expected.reverse(); }
        expected.truncate(limit);
        prop_assert_eq!(store.run(RawScan { start_key, end_key, limit, reverse, key_only }).unwrap(), expected);
    }
}
