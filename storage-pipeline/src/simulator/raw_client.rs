//! A client of raw keys: puts, deletes, compares and swaps, reads, and writes down what it did and heard.

use std::{cell::RefCell, rc::Rc, time::Duration};

use crate::{
    command::{CompareAndSwapResult, RawCompareAndSwap, RawDelete, RawGet, RawPut},
    simulator::{
        invariants::linearizability::{History, Kind, Value},
        port::{Answer, Known, Port},
    },
};

/// Few keys, so that clients meet on them.
pub(super) const KEYS: u32 = 3;

fn key(number: u32) -> Vec<u8> {
    format!("raw-{number}").into_bytes()
}

fn bytes(value: u32) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// What a value in the store stands for; one that nobody wrote is none of them.
fn value(bytes: Option<Vec<u8>>) -> Value {
    bytes.map(|bytes| String::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX))
}

/// Does so many things, with pauses.
pub(super) async fn run(port: Rc<Port>, history: Rc<RefCell<History>>, operations: usize) {
    let mut seen = [None; KEYS as usize];
    for _ in 0..operations {
        let (pause, number, kind) = {
            let mut random = port.random.borrow_mut();
            let pause = random.between(Duration::ZERO, Duration::from_millis(9));
            (pause, random.below(KEYS as usize) as u32, random.below(10))
        };
        port.sleep(pause).await;
        let new = history.borrow_mut().new_value();
        let at = &mut seen[number as usize];
        match kind {
            0..3 => {
                let put = RawPut { key: key(number), value: bytes(new) };
                note(&history, number, port.ask(put).await, |_| Kind::Write(Some(new)));
            }
            3 => {
                note(&history, number, port.ask(RawDelete { key: key(number) }).await, |_| Kind::Write(None))
            }
            4..6 => {
                let previous = *at;
                let swap =
                    RawCompareAndSwap { key: key(number), previous: previous.map(bytes), value: bytes(new) };
                let answer = port.ask(swap).await;
                if let Known::Applied(CompareAndSwapResult { succeeded, previous }) = &answer.outcome {
                    *at = if *succeeded { Some(new) } else { value(previous.clone()) };
                }
                note(&history, number, answer, |heard| Kind::Swap {
                    expected: previous,
                    new,
                    heard: heard.map(found),
                });
            }
            _ => read(&port, &history, number, at).await,
        }
    }
}

fn found(result: CompareAndSwapResult) -> (bool, Value) {
    (result.succeeded, value(result.previous))
}

async fn read(port: &Port, history: &RefCell<History>, number: u32, seen: &mut Value) {
    let answer = port.ask(RawGet { key: key(number) }).await;
    if let Known::Applied(found) = answer.outcome {
        *seen = value(found);
        history.borrow_mut().add(number, Kind::Read(*seen), answer.called, Some(answer.returned));
    }
}

/// Reads every key, as often as it takes.
pub(super) async fn read_all(port: Rc<Port>, history: Rc<RefCell<History>>) {
    for number in 0..KEYS {
        loop {
            let answer = port.ask(RawGet { key: key(number) }).await;
            if let Known::Applied(found) = answer.outcome {
                history.borrow_mut().add(
                    number,
                    Kind::Read(value(found)),
                    answer.called,
                    Some(answer.returned),
                );
                break;
            }
            port.look_anywhere();
            port.sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Writes a write down. One that was not executed never was; one of which nothing is known may take effect at any time.
fn note<T>(history: &RefCell<History>, key: u32, answer: Answer<T>, kind: impl FnOnce(Option<T>) -> Kind) {
    match answer.outcome {
        Known::Applied(heard) => {
            history.borrow_mut().add(key, kind(Some(heard)), answer.called, Some(answer.returned));
        }
        Known::Unknown => history.borrow_mut().add(key, kind(None), answer.called, None),
        Known::NotExecuted(_) => {}
    }
}
