//! What is wrong with the records of transactions: each is decoded, and looked at beside what belongs to it. Pure.

use super::Finding;
use crate::{
    engine::{Cf, Snapshot},
    error::Error,
    txn::{
        Key,
        keys::{decode, split_ts},
        lock::{Lock, LockType},
        write::{Write, WriteType},
    },
};

/// With so many findings it is clear that the store is broken, and nobody reads on.
const MOST_FINDINGS: usize = 1000;

/// Reads every key of a column family and adds what is wrong to the findings. Says how many
/// keys it has read; behind many findings it stops.
///
/// # Errors
/// The engine's refusal to read on.
pub(super) fn check(view: &dyn Snapshot, cf: Cf, findings: &mut Vec<Finding>) -> Result<u64, Error> {
    let mut count = 0;
    let mut cursor = view.cursor(cf, b"", b"");
    cursor.seek_to_first()?;
    while let Some((key, value)) = cursor.entry().filter(|_| findings.len() < MOST_FINDINGS) {
        count += 1;
        let checked = match cf {
            Cf::Default => split_ts(key).and_then(|(key, _)| decode(key)).map(|_| None),
            Cf::Lock => lock(key, value),
            Cf::Write => write(key, value),
            // The pipeline does not know what the user wrote; the rest is read by every start.
            Cf::Raw | Cf::Meta => Ok(None),
        };
        match checked {
            Err(error) => findings.push(Finding::Record { cf, key: key.to_vec(), what: error.to_string() }),
            Ok(Some((of, start_ts))) if view.get(Cf::Default, &of.append_ts(start_ts))?.is_none() => {
                findings.push(Finding::NoValue { cf, key: key.to_vec(), start_ts });
            }
            Ok(_) => {}
        }
        cursor.next()?;
    }
    Ok(count)
}

/// The key and start timestamp of the long value that a record stands for, if it does.
type Elsewhere = Result<Option<(Key, u64)>, Error>;

fn lock(key: &[u8], value: &[u8]) -> Elsewhere {
    decode(key)?;
    let Lock { lock_type, start_ts, short_value, .. } = Lock::decode(value)?;
    let has_value = lock_type == LockType::Put && short_value.is_none();
    Ok(has_value.then(|| (Key::from_encoded(key), start_ts)))
}

fn write(key: &[u8], value: &[u8]) -> Elsewhere {
    let (key, commit_ts) = split_ts(key)?;
    decode(key)?;
    let Write { write_type, start_ts, short_value, .. } = Write::decode(value)?;
    let is_in_order = match write_type {
        WriteType::Rollback => commit_ts == start_ts,
        WriteType::Put | WriteType::Delete | WriteType::Lock => commit_ts > start_ts,
    };
    if !is_in_order {
        let what = format!("a {write_type:?} of timestamp {start_ts} stands at {commit_ts}");
        return Err(Error::Corrupt(what.into()));
    }
    let has_value = write_type == WriteType::Put && short_value.is_none();
    Ok(has_value.then(|| (Key::from_encoded(key), start_ts)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Modify, WriteBatch, memory::MemoryEngine};

    fn findings(puts: &[(Cf, Vec<u8>, Vec<u8>)]) -> Vec<String> {
        let engine = MemoryEngine::default();
        let mut batch = WriteBatch::default();
        for (cf, key, value) in puts {
            batch.push(Modify::Put(*cf, key.clone(), value.clone()));
        }
        engine.write(&batch).unwrap();
        let mut findings = Vec::new();
        for cf in Cf::ALL {
            check(&*engine.snapshot(), cf, &mut findings).unwrap();
        }
        findings.iter().map(ToString::to_string).collect()
    }

    fn key() -> Key {
        Key::from_raw(b"key")
    }

    #[test]
    fn records_with_all_that_belongs_to_them_are_sound() {
        let lock = Lock {
            lock_type: LockType::Put,
            primary: b"key".to_vec(),
            start_ts: 9,
            ttl_ms: 1,
            txn_size: 1,
            min_commit_ts: 10,
            short_value: None,
        };
        let found = findings(&[
            (Cf::Write, key().append_ts(5), Write::new(WriteType::Put, 4, None).encode()),
            (Cf::Default, key().append_ts(4), b"long".to_vec()),
            (Cf::Write, key().append_ts(7), Write::new(WriteType::Put, 6, Some(b"v".to_vec())).encode()),
            (Cf::Write, key().append_ts(8), Write::new_rollback(8, true).encode()),
            (Cf::Lock, key().into_encoded(), lock.encode()),
            (Cf::Default, key().append_ts(9), b"long".to_vec()),
            (Cf::Raw, b"anything".to_vec(), vec![0xff; 9]),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn each_record_that_cannot_be_read_or_lacks_its_value_is_found() {
        let put = |start_ts| Write::new(WriteType::Put, start_ts, None).encode();
        for (puts, words) in [
            (vec![(Cf::Write, key().append_ts(5), put(4))], "timestamp 4 is missing"),
            (vec![(Cf::Write, key().append_ts(5), Vec::new())], "write "),
            (vec![(Cf::Write, b"short".to_vec(), put(4))], "write short"),
            (vec![(Cf::Write, key().append_ts(3), put(4))], "stands at 3"),
            (vec![(Cf::Write, key().append_ts(4), Write::new_rollback(3, true).encode())], "stands at 4"),
            (vec![(Cf::Lock, key().into_encoded(), vec![9])], "lock "),
            (vec![(Cf::Lock, b"no key".to_vec(), Vec::new())], "lock no key"),
            (vec![(Cf::Default, b"x".to_vec(), Vec::new())], "default x"),
        ] {
            let found = findings(&puts);
            assert!(found.len() == 1 && found[0].contains(words), "{found:?}: {words}");
        }
    }
}
