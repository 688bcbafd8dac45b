//! `Reply`: waiting and polling against calling, dropping and timing out.

#![cfg(callback_slot_loom)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use callback_slot::{Callback, Dropped, SharedSlot, reply};
use loom::thread;
use loom_tests::{Count, Probe, model};

/// A value that its reader can only read if the hand-off brings order.
fn written() -> Probe {
    let probe = Probe::new();
    probe.write();
    probe
}

#[test]
fn waits_until_called() {
    model(|| {
        let (callback, reply) = reply();
        let there = thread::spawn(move || callback.call(written()));
        reply.wait().unwrap().read();
        there.join().unwrap();
    });
}

#[test]
fn waits_until_dropped() {
    model(|| {
        let (callback, reply) = reply::<Probe>();
        let there = thread::spawn(move || drop(callback));
        assert!(reply.wait().is_err());
        there.join().unwrap();
    });
}

#[test]
fn asks_without_waiting() {
    model(|| {
        let (callback, reply) = reply();
        let there = thread::spawn(move || callback.call(written()));
        let ready = reply.is_ready();
        match reply.try_into_value() {
            Ok(value) => value.unwrap().read(),
            Err(reply) => {
                assert!(!ready, "ready stays ready");
                reply.wait().unwrap().read();
            }
        }
        there.join().unwrap();
    });
}

#[test]
fn reply_goes_while_called() {
    model(|| {
        let (callback, reply) = reply();
        let value = written();
        let there = thread::spawn(move || callback.call(value));
        drop(reply);
        there.join().unwrap();
    });
}

/// A timeout is a further thread that does what the timeout would: loom's waits never expire.
#[test]
fn waits_for_the_first_of_apply_and_timeout() {
    model(|| {
        let (callback, reply) = reply();
        let apply = SharedSlot::from(callback);
        let timeout = apply.clone();
        let apply = thread::spawn(move || apply.complete(Ok(written())).is_ok());
        let timeout = thread::spawn(move || timeout.complete(Err(written())).is_ok());
        let answer = reply.wait().unwrap();
        let (applied, timed_out) = (apply.join().unwrap(), timeout.join().unwrap());
        assert_eq!((applied, timed_out), (answer.is_ok(), answer.is_err()));
        answer.unwrap_or_else(|late| late).read();
    });
}

/// Counts how often it is woken.
struct Woken(Count);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.add();
    }
}

fn poll<F: Future + Unpin>(future: &mut F, woken: &Count) -> Poll<F::Output> {
    let waker = Waker::from(Arc::new(Woken(woken.clone())));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// Polled twice by different tasks: if both find nothing, it is the second that is woken, and nobody else.
fn polled(finish: fn(Callback<Probe>), check: fn(Result<Probe, Dropped>)) {
    model(move || {
        let (callback, mut reply) = reply();
        let (first, second) = (Count::default(), Count::default());
        let there = thread::spawn(move || finish(callback));
        let mut answer = poll(&mut reply, &first);
        let polls = if answer.is_pending() { 2 } else { 1 };
        if polls == 2 {
            answer = poll(&mut reply, &second);
        }
        there.join().unwrap();
        if answer.is_pending() {
            assert_eq!((first.get(), second.get()), (0, 1), "the one who polled last is woken");
            answer = poll(&mut reply, &second);
        }
        match answer {
            Poll::Ready(answer) => check(answer),
            Poll::Pending => panic!("the callback is finished"),
        }
        assert_eq!(poll(&mut reply, &first).map(|again| again.is_err()), Poll::Ready(true));
    });
}

/// Whoever leaves the waiter where it was put takes it out, the reply that goes or the sender; it is woken or it is not.
#[test]
fn polled_reply_goes_while_called() {
    model(|| {
        let (callback, mut reply) = reply();
        let woken = Count::default();
        assert!(poll(&mut reply, &woken).is_pending());
        let there = thread::spawn(move || callback.call(written()));
        drop(reply);
        there.join().unwrap();
        assert!(woken.get() <= 1);
    });
}

#[test]
fn polled_until_called() {
    polled(|callback| callback.call(written()), |answer| answer.unwrap().read());
}

#[test]
fn polled_until_dropped() {
    polled(drop, |answer| assert!(answer.is_err()));
}

/// A thread waits in place of a task: either was woken, and the thread never sleeps through the call.
#[test]
fn polled_then_waits_until_called() {
    model(|| {
        let (callback, mut reply) = reply();
        let woken = Count::default();
        let there = thread::spawn(move || callback.call(written()));
        match poll(&mut reply, &woken) {
            Poll::Ready(answer) => answer.unwrap().read(),
            Poll::Pending => reply.wait().unwrap().read(),
        }
        there.join().unwrap();
        assert!(woken.get() <= 1);
    });
}

/// The reply moves on to a thread of its own, and there replaces a waiter that another thread put in.
#[test]
fn polled_here_then_there_while_called() {
    model(|| {
        let (callback, mut reply) = reply();
        let (first, second) = (Count::default(), Count::default());
        let caller = thread::spawn(move || callback.call(written()));
        let answer = poll(&mut reply, &first);
        let counted = second.clone();
        let poller = thread::spawn(move || {
            let answer = if answer.is_pending() { poll(&mut reply, &counted) } else { answer };
            (answer, reply)
        });
        caller.join().unwrap();
        let (mut answer, mut reply) = poller.join().unwrap();
        if answer.is_pending() {
            assert_eq!((first.get(), second.get()), (0, 1), "the one who polled last is woken");
            answer = poll(&mut reply, &second);
        }
        match answer {
            Poll::Ready(answer) => answer.unwrap().read(),
            Poll::Pending => panic!("the callback was called"),
        }
    });
}

/// Put in, replaced, and taken back, against a sender that may take out any of them.
#[test]
fn polled_twice_reply_goes_while_called() {
    model(|| {
        let (callback, mut reply) = reply();
        let (first, second) = (Count::default(), Count::default());
        let there = thread::spawn(move || callback.call(written()));
        if poll(&mut reply, &first).is_pending() {
            let _ = poll(&mut reply, &second);
        }
        drop(reply);
        there.join().unwrap();
        assert!(first.get() + second.get() <= 1);
    });
}
