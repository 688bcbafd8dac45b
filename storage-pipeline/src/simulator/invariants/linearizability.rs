//! Linearizability of raw keys: what clients did and heard can be put into an order in which each command took effect
//! between its call and its return.
//!
//! A command of which nobody knows the fate stays open to the end: it may take effect at any time, or so late that
//! nobody sees it. One that was not executed is left out, so a read that sees its value is a violation.

use std::collections::BTreeMap;

use porcupine_rs::{CheckResult, Model, Operation, check_operations_timeout};

/// A value of a raw key: the number of the write, or none.
pub(in crate::simulator) type Value = Option<u32>;

/// What a command did to its key, and what was heard of it.
#[derive(Clone, Debug)]
pub(in crate::simulator) enum Kind {
    Write(Value),
    Read(Value),
    Swap { expected: Value, new: u32, heard: Option<(bool, Value)> },
}

/// What all clients did to all raw keys.
#[derive(Default)]
pub(in crate::simulator) struct History {
    values: u32,
    keys: BTreeMap<u32, Vec<Operation<Register>>>,
}

impl History {
    /// A value that nobody has written yet.
    pub(in crate::simulator) fn new_value(&mut self) -> u32 {
        self.values += 1;
        self.values
    }

    pub(in crate::simulator) fn add(&mut self, key: u32, op: Kind, called: u64, returned: Option<u64>) {
        let return_time = returned.map_or(i64::MAX, |returned| returned as i64);
        let operation =
            Operation { client_id: None, call_time: called as i64, return_time, op, metadata: None };
        self.keys.entry(key).or_default().push(operation);
    }

    /// How many commands are in it.
    pub(in crate::simulator) fn len(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }

    /// # Errors
    /// The key whose history has no such order, with the history.
    pub(in crate::simulator) fn check(&self) -> Result<(), String> {
        for (key, history) in &self.keys {
            let result = check_operations_timeout(history, std::time::Duration::from_secs(20));
            if result == CheckResult::Ok {
                continue;
            }
            let mut history: Vec<_> = history.iter().collect();
            history.sort_by_key(|operation| operation.call_time);
            let lines = history.iter().map(|operation| {
                let Operation { call_time, return_time, op, .. } = operation;
                match *return_time {
                    i64::MAX => format!("\n    {call_time} .. : {op:?}"),
                    _ => format!("\n    {call_time} .. {return_time}: {op:?}"),
                }
            });
            return Err(format!(
                "raw key {key} is not linearizable ({result:?}):{}",
                lines.collect::<String>()
            ));
        }
        Ok(())
    }
}

/// A register that can be written, read, and swapped if it has the expected value.
#[derive(Clone, Debug)]
struct Register;

impl Model for Register {
    type State = Value;
    type Op = Kind;
    type Metadata = ();

    fn init() -> Value {
        None
    }

    fn step(state: &Value, op: &Kind) -> (bool, Value) {
        match *op {
            Kind::Write(value) => (true, value),
            Kind::Read(value) => (value == *state, *state),
            Kind::Swap { expected, new, heard } => {
                let succeeds = *state == expected;
                let fits = heard.is_none_or(|heard| heard == (succeeds, *state));
                (fits, if succeeds { Some(new) } else { *state })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(operations: &[(Kind, u64, Option<u64>)]) -> History {
        let mut history = History::default();
        for (kind, called, returned) in operations {
            history.add(0, kind.clone(), *called, *returned);
        }
        history
    }

    #[test]
    fn a_write_of_unknown_fate_may_come_late_or_never_and_one_that_is_known_may_not() {
        let read = |value, at| (Kind::Read(value), at, Some(at + 1));
        let late = history(&[(Kind::Write(Some(1)), 1, None), read(None, 3), read(Some(1), 5)]);
        late.check().unwrap();
        history(&[(Kind::Write(Some(1)), 1, None), read(None, 3)]).check().unwrap();
        assert!(history(&[(Kind::Write(Some(1)), 1, Some(2)), read(None, 3)]).check().is_err());
        let undone = history(&[(Kind::Write(Some(1)), 1, None), read(Some(1), 3), read(None, 5)]);
        assert!(undone.check().is_err());
    }

    #[test]
    fn a_swap_answers_for_what_it_found() {
        let swap = |expected, heard, at| (Kind::Swap { expected, new: 9, heard }, at, Some(at + 1));
        history(&[swap(None, Some((true, None)), 1), swap(None, Some((false, Some(9))), 3)]).check().unwrap();
        assert!(
            history(&[swap(None, Some((true, None)), 1), swap(None, Some((true, None)), 3)]).check().is_err()
        );
    }
}
