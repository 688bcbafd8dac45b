//! Waiting for a callback, by blocking and by polling.

use crate::support::Count;
use callback_slot::{reply, CallbackSlot, Dropped};

#[test]
fn answered_before_it_is_asked() {
    let (callback, reply) = reply();
    assert_eq!(format!("{reply:?}"), "Reply(pending)");
    callback.call(Box::new(7));
    assert_eq!(format!("{reply:?}"), "Reply(ready)");
    assert_eq!(reply.try_into_value().unwrap(), Ok(Box::new(7)));
}

#[test]
fn values_are_dropped_once_on_every_path() {
    let drops = Count::new();
    let (callback, unanswered) = reply();
    callback.call(drops.on_drop());
    drop(unanswered);
    assert_eq!(drops.get(), 1, "a value that nobody takes");
    let (callback, gone) = reply();
    drop(gone);
    callback.call(drops.on_drop());
    assert_eq!(drops.get(), 2, "a value for nobody");
    let (callback, taken) = reply();
    callback.call(drops.on_drop());
    assert_eq!(taken.try_into_value().unwrap().unwrap().touch(), 7);
    assert_eq!(drops.get(), 3);
}

#[test]
fn dropped_callback_is_an_answer() {
    let (callback, reply) = reply::<u32>();
    drop(CallbackSlot::from(callback));
    assert_eq!(reply.try_into_value().unwrap(), Err(Dropped));
}

#[cfg(feature = "wait")]
mod wait {
    use crate::support::ROUNDS;
    use callback_slot::{reply, SharedSlot, WaitError};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn race_waits_for_a_call() {
        for _ in 0..ROUNDS.min(300) {
            let (callback, reply) = reply();
            let there = thread::spawn(move || callback.call(Box::new(7)));
            assert_eq!(reply.wait(), Ok(Box::new(7)));
            there.join().unwrap();
        }
    }

    #[test]
    fn race_waits_for_a_drop() {
        for _ in 0..ROUNDS.min(300) {
            let (callback, reply) = reply::<Box<usize>>();
            let there = thread::spawn(move || drop(callback));
            assert!(reply.wait().is_err());
            there.join().unwrap();
        }
    }

    #[test]
    fn times_out_and_waits_on() {
        let (callback, reply) = reply();
        let started = Instant::now();
        let short = Duration::from_millis(20);
        let Err(WaitError::TimedOut(reply)) = reply.wait_timeout(short) else { panic!("nobody calls") };
        assert!(started.elapsed() >= short);
        // Another thread waits on: it is that one that is woken.
        let waiter = thread::spawn(move || reply.wait_timeout(Duration::MAX).unwrap());
        callback.call(7);
        assert_eq!(waiter.join().unwrap(), 7);
    }

    #[test]
    fn no_time_at_all_still_sees_an_answer() {
        let (callback, unanswered) = reply::<u32>();
        let Err(WaitError::TimedOut(pending)) = unanswered.wait_timeout(Duration::ZERO) else {
            panic!("not called")
        };
        callback.call(7);
        assert_eq!(pending.wait_timeout(Duration::ZERO).unwrap(), 7);
        let (callback, dropped) = reply::<u32>();
        drop(callback);
        let error = dropped.wait_timeout(Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "the callback was dropped uncalled");
    }

    #[test]
    fn race_waits_for_the_first_of_two() {
        for _ in 0..ROUNDS.min(300) {
            let (callback, reply) = reply();
            let apply = SharedSlot::from(callback);
            let timeout = apply.clone();
            let apply = thread::spawn(move || apply.complete(Ok(7)).is_ok());
            let timeout = thread::spawn(move || timeout.complete(Err("timed out")).is_ok());
            let answer = reply.wait().unwrap();
            assert_eq!(apply.join().unwrap(), answer.is_ok());
            assert_eq!(timeout.join().unwrap(), answer.is_err());
        }
    }
}

#[cfg(feature = "future")]
mod future {
    use crate::support::{together, Count, ROUNDS};
    use callback_slot::{reply, Dropped};
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

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

    #[test]
    fn the_last_waker_is_woken_once() {
        let (first, second) = (Count::new(), Count::new());
        let (callback, mut reply) = reply();
        assert!(poll(&mut reply, &first).is_pending());
        assert!(poll(&mut reply, &second).is_pending());
        callback.call(Box::new(7));
        assert_eq!((first.get(), second.get()), (0, 1));
        assert_eq!(poll(&mut reply, &first), Poll::Ready(Ok(Box::new(7))));
        assert_eq!(poll(&mut reply, &first), Poll::Ready(Err(Dropped)), "it has given its value away");
    }

    #[test]
    fn a_reply_that_goes_wakes_nobody() {
        let woken = Count::new();
        let (callback, mut reply) = reply::<u32>();
        assert!(poll(&mut reply, &woken).is_pending());
        drop(reply);
        callback.call(7);
        assert_eq!(woken.get(), 0);
    }

    #[test]
    fn race_poll_against_call() {
        for _ in 0..ROUNDS {
            let woken = Count::new();
            let (callback, mut reply) = reply();
            let counted = woken.clone();
            let ((), (first, mut reply)) =
                together(move || callback.call(Box::new(7)), move || (poll(&mut reply, &counted), reply));
            let value = match first {
                Poll::Ready(value) => value,
                Poll::Pending => {
                    assert_eq!(woken.get(), 1);
                    match poll(&mut reply, &woken) {
                        Poll::Ready(value) => value,
                        Poll::Pending => panic!("it was woken"),
                    }
                }
            };
            assert_eq!(value, Ok(Box::new(7)));
        }
    }
}
