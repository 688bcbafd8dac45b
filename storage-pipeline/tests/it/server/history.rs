//! What clients did to raw keys and what they heard, and whether that is linearizable.

use std::{collections::BTreeMap, sync::Mutex, time::Instant};

use porcupine_rs::{CheckResult, Model, Operation, check_operations_timeout};

use crate::support::PATIENCE;

/// What was done to a key.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Put(u64),
    Get(Option<u64>),
}

/// A key is a register.
#[derive(Clone, Debug)]
pub(crate) struct Register;

impl Model for Register {
    type State = Option<u64>;
    type Op = Op;
    type Metadata = ();

    fn init() -> Option<u64> {
        None
    }

    fn step(state: &Option<u64>, op: &Op) -> (bool, Option<u64>) {
        match *op {
            Op::Put(value) => (true, Some(value)),
            Op::Get(value) => (value == *state, *state),
        }
    }
}

/// The history of all keys. What was not executed is not in it; what is of unknown fate has no end.
pub(crate) struct History {
    start: Instant,
    keys: Mutex<BTreeMap<String, Vec<Operation<Register>>>>,
}

impl Default for History {
    fn default() -> Self {
        Self { start: Instant::now(), keys: Mutex::default() }
    }
}

impl History {
    pub(crate) fn now(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_nanos()).unwrap()
    }

    pub(crate) fn add(&self, key: &str, op: Op, call_time: i64, return_time: Option<i64>) {
        let return_time = return_time.unwrap_or(i64::MAX);
        let operation = Operation { client_id: None, call_time, return_time, op, metadata: None };
        self.keys.lock().unwrap().entry(key.to_owned()).or_default().push(operation);
    }

    /// Checks every key. Says how many commands there were.
    pub(crate) fn check(&self) -> usize {
        let keys = self.keys.lock().unwrap();
        for (key, history) in keys.iter() {
            let result = check_operations_timeout(history, PATIENCE * 5);
            if result != CheckResult::Ok {
                let mut history = history.clone();
                history.sort_by_key(|operation| operation.call_time);
                panic!("{key} is not linearizable ({result:?}): {history:#?}");
            }
        }
        keys.values().map(Vec::len).sum()
    }
}

#[test]
fn the_checker_of_histories_finds_a_lost_write_and_a_stale_read() {
    let history = |ops: &[(Op, i64, Option<i64>)]| {
        let history = History::default();
        ops.iter().for_each(|(op, called, returned)| history.add("k", op.clone(), *called, *returned));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| history.check())).is_ok()
    };
    assert!(history(&[(Op::Put(1), 1, Some(2)), (Op::Get(Some(1)), 3, Some(4))]));
    assert!(history(&[(Op::Put(1), 1, None), (Op::Get(None), 3, Some(4)), (Op::Get(Some(1)), 5, Some(6))]));
    assert!(!history(&[(Op::Put(1), 1, Some(2)), (Op::Get(None), 3, Some(4))]), "lost");
    let stale = [(Op::Put(1), 1, Some(2)), (Op::Put(2), 3, Some(4)), (Op::Get(Some(1)), 5, Some(6))];
    assert!(!history(&stale), "stale");
}
