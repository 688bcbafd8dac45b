//! Gets and scans: what they see, what stops them, and both directions.

use proptest::prelude::*;

use crate::{
    Error,
    command::{BatchGet, KvPair, Scan, ScanLock, testing::*},
};

fn scan(start: &str, end: &str, read_ts: u64) -> Scan {
    Scan {
        start_key: start.into(),
        end_key: end.into(),
        limit: usize::MAX,
        read_ts,
        reverse: false,
        key_only: false,
        bypass_locks: Vec::new(),
    }
}

fn keys(pairs: Vec<KvPair>) -> Vec<String> {
    pairs.into_iter().map(|pair| String::from_utf8(pair.key).unwrap()).collect()
}

#[test]
fn several_keys_are_read_at_once_and_absent_ones_left_out() {
    let store = Store::default();
    store.must_write(10, 15, vec![put("b", "1"), put("a", "2"), put("d", [9; 300])]);
    let get = |read_ts| BatchGet { keys: bytes(&["d", "c", "b", "a", "b"]), read_ts, bypass_locks: vec![] };
    assert_eq!(keys(store.run(get(15)).unwrap()), ["d", "b", "a", "b"]);
    assert_eq!(store.run(get(14)).unwrap(), []);
    store.prewrite(20, vec![delete("c")]).unwrap();
    assert!(matches!(store.run(get(20 + 1)), Err(Error::KeyIsLocked(lock)) if lock.key == b"c"));
    let bypass = BatchGet { bypass_locks: vec![20], ..get(21) };
    assert_eq!(keys(store.run(bypass).unwrap()), ["d", "b", "a", "b"]);
}

#[test]
fn only_locks_that_might_commit_in_time_stop_a_read() {
    let store = Store::default();
    store.must_write(10, 15, vec![put("k", "v")]);
    store.prewrite(20, vec![lock("k"), put("l", "v")]).unwrap();
    assert_eq!(store.must_get("k", 30), Some(b"v".to_vec()), "a lock that changes nothing stops nobody");
    assert_eq!(store.must_get("l", 20), None, "a commit comes after its start");
    assert!(matches!(store.get("l", 21), Err(Error::KeyIsLocked(_))));
}

#[test]
fn a_scan_ends_before_the_lock_that_would_stop_it_if_its_limit_does() {
    let store = Store::default();
    store.must_write(10, 15, vec![put("a", "1"), put("b", "2"), put("d", "4")]);
    store.prewrite(20, vec![put("c", "3")]).unwrap();
    for (reverse, expected) in [(false, vec!["a", "b"]), (true, vec!["d"])] {
        let page = |limit| store.run(Scan { reverse, limit, ..scan("", "", 30) });
        assert_eq!(keys(page(expected.len()).unwrap()), expected);
        assert!(matches!(page(expected.len() + 1), Err(Error::KeyIsLocked(lock)) if lock.key == b"c"));
        let past = Scan { reverse, bypass_locks: vec![20], ..scan("", "", 30) };
        assert_eq!(store.run(past).unwrap().len(), 3);
    }
}

#[test]
fn ranges_are_half_open_in_both_directions_and_may_be_empty() {
    let store = Store::default();
    store.must_write(10, 15, vec![put("a", "1"), put("ab", "2"), put("b", "3"), put("b\0", "4")]);
    for reverse in [false, true] {
        let range = |start, end| {
            let mut found = keys(store.run(Scan { reverse, ..scan(start, end, 20) }).unwrap());
            found.sort();
            found
        };
        assert_eq!(range("a", "b"), ["a", "ab"]);
        assert_eq!(range("a\0", "b\0"), ["ab", "b"]);
        assert_eq!(range("b", ""), ["b", "b\0"]);
        assert_eq!(range("b", "b"), [""; 0]);
        assert_eq!(range("b", "a"), [""; 0]);
        assert_eq!(range("c", ""), [""; 0]);
    }
}

#[test]
fn a_scan_passes_many_versions_of_a_key() {
    let store = Store::default();
    for ts in 0..40 {
        store.must_write(10 * ts + 1, 10 * ts + 2, vec![put("k", ts.to_string()), lock("l")]);
    }
    for reverse in [false, true] {
        for ts in [0, 7, 8, 9, 25, 39] {
            let found = store.run(Scan { reverse, ..scan("", "", 10 * ts + 2) }).unwrap();
            assert_eq!(found, [KvPair { key: b"k".to_vec(), value: ts.to_string().into() }]);
        }
    }
    let key_only = store.run(Scan { key_only: true, ..scan("", "", 500) }).unwrap();
    assert_eq!(key_only, [KvPair { key: b"k".to_vec(), value: vec![] }]);
}

#[test]
fn old_locks_are_listed_in_pages() {
    let store = Store::default();
    for (start_ts, key) in [(30, "a"), (10, "b"), (20, "c"), (40, "d")] {
        store.prewrite(start_ts, vec![put(key, "v")]).unwrap();
    }
    let list = |start: &str, end: &str, limit| {
        let locks =
            store.run(ScanLock { max_ts: 30, start_key: start.into(), end_key: end.into(), limit }).unwrap();
        locks
            .into_iter()
            .map(|lock| (String::from_utf8(lock.key).unwrap(), lock.start_ts))
            .collect::<Vec<_>>()
    };
    let lock = |key: &str, start_ts| (key.to_owned(), start_ts);
    assert_eq!(list("", "", 9), [lock("a", 30), lock("b", 10), lock("c", 20)]);
    assert_eq!(list("", "", 2), [lock("a", 30), lock("b", 10)]);
    assert_eq!(list("b\0", "", 2), [lock("c", 20)]);
    assert_eq!(list("b", "c", 9), [lock("b", 10)]);
    assert_eq!(list("c", "b", 9), []);
}

proptest! {
    #[test]
    fn the_pages_of_both_directions_are_one_scan(
        writes in proptest::collection::vec((0u8..12, 0u8..4), 1..60), read_at in 0usize..60, limit in 1usize..4,
    ) {
        let store = Store::default();
        for (n, (key, kind)) in writes.iter().enumerate() {
            let key = "k".repeat(usize::from(*key));
            let mutation = match kind {
                0 => delete(&format!("{key}.")),
                1 => lock(&format!("{key}.")),
                _ => put(&format!("{key}."), n.to_string()),
            };
            let ts = 10 * n as u64 + 1;
            store.must_write(ts, ts + 1, vec![mutation]);
        }
        let read_ts = 10 * read_at as u64 + 5;
        let whole = store.run(scan("", "", read_ts)).unwrap();
        let mut reversed = store.run(Scan { reverse: true, ..scan("", "", read_ts) }).unwrap();
        reversed.reverse();
        prop_assert_eq!(&whole, &reversed);
        for pair in &whole {
            let key = std::str::from_utf8(&pair.key).unwrap();
            prop_assert_eq!(store.must_get(key, read_ts), Some(pair.value.clone()));
        }

        let mut forward: Vec<KvPair> = Vec::new();
        let mut backward: Vec<KvPair> = Vec::new();
        loop {
            let start = forward.last().map_or(Vec::new(), |last| [&last.key[..], b"\0"].concat());
            let page = store.run(Scan { start_key: start, limit, ..scan("", "", read_ts) }).unwrap();
            if page.is_empty() { break; }
            forward.extend(page);
        }
        loop {
            let end_key = backward.last().map_or(Vec::new(), |last| last.key.clone());
            let page = store.run(Scan { end_key, limit, reverse: true, ..scan("", "", read_ts) }).unwrap();
            if page.is_empty() { break; }
            backward.extend(page);
        }
        backward.reverse();
        prop_assert_eq!(&forward, &whole);
        prop_assert_eq!(&backward, &whole);
    }
}
