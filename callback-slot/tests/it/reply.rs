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
    use crate::support::{Count, ROUNDS};
    use callback_slot::{reply, Reply, SharedSlot, WaitError};
    use std::cell::RefCell;
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

    /// The destructors of a thread's own values run when much of the thread is gone. One may wait all the same.
    #[test]
    fn waits_while_its_thread_ends() {
        struct WaitsAtTheEnd(Option<Reply<usize>>, Count);

        impl Drop for WaitsAtTheEnd {
            fn drop(&mut self) {
                let reply = self.0.take().unwrap();
                let Err(WaitError::TimedOut(reply)) = reply.wait_timeout(Duration::from_millis(1)) else {
                    panic!("it is called when this waits no more")
                };
                self.1.add();
                assert_eq!(reply.wait(), Ok(7));
                self.1.add();
            }
        }

        thread_local! {
            static KEPT: RefCell<Option<WaitsAtTheEnd>> = const { RefCell::new(None) };
        }
        let waits = Count::new();
        let (callback, reply) = reply();
        let counted = waits.clone();
        let ended = thread::spawn(move || KEPT.set(Some(WaitsAtTheEnd(Some(reply), counted))));
        while waits.get() == 0 {
            thread::yield_now();
        }
        callback.call(7);
        ended.join().unwrap();
        assert_eq!(waits.get(), 2);
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
    use crate::support::{together, Count, OnDrop, ROUNDS};
    use callback_slot::{reply, Dropped, Reply};
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
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

    /// What a waker does that has no manners.
    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        Waking,
        Dropping,
    }

    struct Bad(Fault, Count);

    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            if self.0 == Fault::Waking {
                std::panic::resume_unwind(Box::new("waking"));
            }
        }
    }

    impl Drop for Bad {
        fn drop(&mut self) {
            self.1.add();
            if self.0 == Fault::Dropping {
                std::panic::resume_unwind(Box::new("dropping"));
            }
        }
    }

    fn fails(action: impl FnOnce()) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(action)).is_err()
    }

    /// Leaves a bad waker, and nothing else of it, in the reply.
    fn poll_badly(reply: &mut Reply<OnDrop>, fault: Fault, drops: &Count) {
        let waker = Waker::from(Arc::new(Bad(fault, drops.clone())));
        assert!(Pin::new(reply).poll(&mut Context::from_waker(&waker)).is_pending());
    }

    #[test]
    fn a_waker_that_panics_costs_no_answer() {
        for fault in [Fault::Waking, Fault::Dropping] {
            let (wakers, values, woken) = (Count::new(), Count::new(), Count::new());
            let (callback, mut reply) = reply();
            poll_badly(&mut reply, fault, &wakers);
            assert!(fails(|| callback.call(values.on_drop())), "its panic is the caller's");
            assert_eq!((wakers.get(), values.get()), (1, 0));
            assert!(matches!(poll(&mut reply, &woken), Poll::Ready(Ok(value)) if value.touch() == 7));
            assert_eq!(values.get(), 1);
        }
    }

    #[test]
    fn a_replaced_waker_that_panics_leaves_its_successor() {
        let (wakers, values, woken) = (Count::new(), Count::new(), Count::new());
        let (callback, mut reply) = reply();
        poll_badly(&mut reply, Fault::Dropping, &wakers);
        assert!(fails(|| assert!(poll(&mut reply, &woken).is_pending())));
        callback.call(values.on_drop());
        assert_eq!((wakers.get(), woken.get()), (1, 1));
        assert!(matches!(poll(&mut reply, &woken), Poll::Ready(Ok(_))));
        assert_eq!(values.get(), 1);
    }

    #[test]
    fn a_waker_that_panics_when_the_reply_goes() {
        let (wakers, values) = (Count::new(), Count::new());
        let (callback, mut reply) = reply();
        poll_badly(&mut reply, Fault::Dropping, &wakers);
        assert!(fails(|| drop(reply)));
        callback.call(values.on_drop());
        assert_eq!((wakers.get(), values.get()), (1, 1));
    }

    /// An executor that does not queue: its waker has the reply, and polls or drops it at once.
    struct AtOnce {
        reply: Mutex<Option<Reply<OnDrop>>>,
        polls: bool,
    }

    impl Wake for AtOnce {
        fn wake(self: Arc<Self>) {
            let mut reply = self.reply.lock().unwrap().take().unwrap();
            if self.polls {
                let waker = Waker::from(Arc::clone(&self));
                let mut context = Context::from_waker(&waker);
                assert!(matches!(Pin::new(&mut reply).poll(&mut context), Poll::Ready(Ok(_))));
            }
        }
    }

    #[test]
    fn a_waker_polls_or_drops_its_reply_at_once() {
        for polls in [true, false] {
            let drops = Count::new();
            let (callback, mut reply) = reply();
            let executor = Arc::new(AtOnce { reply: Mutex::new(None), polls });
            let waker = Waker::from(Arc::clone(&executor));
            assert!(Pin::new(&mut reply).poll(&mut Context::from_waker(&waker)).is_pending());
            *executor.reply.lock().unwrap() = Some(reply);
            drop((executor, waker));
            callback.call(drops.on_drop());
            assert_eq!(drops.get(), 1);
        }
    }

    /// Each poll replaces the waker of the one before, while the call may take it: one waker is woken, or none too late.
    #[test]
    fn race_poll_again_against_call() {
        for _ in 0..ROUNDS {
            let woken: [Count; 3] = std::array::from_fn(|_| Count::new());
            let (callback, mut reply) = reply();
            let polled_with = woken.clone();
            let ((), (first, mut reply)) = together(
                move || callback.call(Box::new(7)),
                move || {
                    let first = polled_with.iter().map(|woken| poll(&mut reply, woken)).find(Poll::is_ready);
                    (first, reply)
                },
            );
            let sum: usize = woken.iter().map(Count::get).sum();
            let answer = match first {
                Some(answer) => answer,
                None => {
                    assert_eq!(woken[2].get(), 1, "the last one is woken");
                    poll(&mut reply, &woken[0])
                }
            };
            assert!(sum <= 1);
            assert_eq!(answer, Poll::Ready(Ok(Box::new(7))));
        }
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
