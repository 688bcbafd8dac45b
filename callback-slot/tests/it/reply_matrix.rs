//! The product of what a reply does and what its callback does, at the same time: two steps of the reply and an end, by
//! either kind of waiting, against a call or a drop.

use crate::support::{together, Count, OnDrop, ROUNDS};
use callback_slot::{reply, Dropped, Reply, WaitError};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow::{self, Break, Continue};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

type Answer = Result<OnDrop, Dropped>;
/// Breaks off with the answer, or goes on with the reply.
type Step = fn(Reply<OnDrop>, &Count) -> ControlFlow<Answer, Reply<OnDrop>>;

/// What a reply can do and still be there.
const STEPS: [Step; 4] = [ask, poll, wait_for_no_time, try_into_value];
/// What is done with a reply at last: `None` if nobody reads the answer.
const ENDS: [fn(Reply<OnDrop>) -> Option<Answer>; 3] =
    [|reply| Some(reply.wait()), |reply| thread::spawn(|| reply.wait()).join().ok(), |_| None];

fn ask(reply: Reply<OnDrop>, _: &Count) -> ControlFlow<Answer, Reply<OnDrop>> {
    if !reply.is_ready() {
        return Continue(reply);
    }
    Break(reply.try_into_value().expect("ready stays ready"))
}

fn poll(mut reply: Reply<OnDrop>, woken: &Count) -> ControlFlow<Answer, Reply<OnDrop>> {
    let waker = Waker::from(Arc::new(Woken(woken.clone())));
    match Pin::new(&mut reply).poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(answer) => Break(answer),
        Poll::Pending => Continue(reply),
    }
}

fn wait_for_no_time(reply: Reply<OnDrop>, _: &Count) -> ControlFlow<Answer, Reply<OnDrop>> {
    match reply.wait_timeout(Duration::ZERO) {
        Ok(value) => Break(Ok(value)),
        Err(WaitError::Dropped) => Break(Err(Dropped)),
        Err(WaitError::TimedOut(reply)) => Continue(reply),
    }
}

fn try_into_value(reply: Reply<OnDrop>, _: &Count) -> ControlFlow<Answer, Reply<OnDrop>> {
    match reply.try_into_value() {
        Ok(answer) => Break(answer),
        Err(reply) => Continue(reply),
    }
}

struct Woken(Count);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.add();
    }
}

/// All ways in which two steps and an end meet a call or a drop. Under Miri a few of them, chosen by the seed.
fn ways() -> impl Iterator<Item = (usize, bool)> {
    let all = STEPS.len() * STEPS.len() * ENDS.len() * 2;
    let (first, count) = if cfg!(miri) {
        (RandomState::new().hash_one(0) as usize, 3 * ROUNDS)
    } else {
        (0, all * ROUNDS / 20)
    };
    (first..first.wrapping_add(count)).map(move |number| (number % all / 2, number % 2 == 0))
}

#[test]
fn race_all_that_a_reply_does_against_call_and_drop() {
    for (way, called) in ways() {
        let (values, woken) = (Count::new(), Count::new());
        let (callback, reply) = reply();
        let (value, counted) = (values.on_drop(), woken.clone());
        let ((), answer) = together(
            move || if called { callback.call(value) } else { drop(callback) },
            move || {
                let steps = [STEPS[way % 4], STEPS[way / 4 % 4]];
                match steps.into_iter().try_fold(reply, |reply, step| step(reply, &counted)) {
                    Break(answer) => Some(answer),
                    Continue(reply) => ENDS[way / 16](reply),
                }
            },
        );
        match answer {
            Some(Ok(value)) => assert!(called && value.touch() == 7, "way {way}"),
            Some(Err(Dropped)) => assert!(!called, "way {way}"),
            None => {}
        }
        assert_eq!(values.get(), 1, "way {way}, called: {called}");
        assert!(woken.get() <= 1, "way {way}: one waker waits at a time");
    }
}
