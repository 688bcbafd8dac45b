//! What the forms cost in memory: as many allocations as their documentation says, and each of them is given back.

use callback_slot::{Callback, CallbackSlot, InPlaceSlot, OptionCell, SharedSlot};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// The system's allocator, with a count for each thread: other tests run at the same time.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static MADE: Cell<usize> = const { Cell::new(0) };
    static GIVEN_BACK: Cell<usize> = const { Cell::new(0) };
    static LAST_ADDRESS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all is done by the system's allocator; a count that needs no memory of its own is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MADE.set(MADE.get() + 1);
        // SAFETY: the caller's contract.
        let memory = unsafe { System.alloc(layout) };
        LAST_ADDRESS.set(memory.addr());
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        GIVEN_BACK.set(GIVEN_BACK.get() + 1);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Where this thread's last allocation lies, or lay.
pub(crate) fn last_address() -> usize {
    LAST_ADDRESS.get()
}

/// How many allocations `action` makes. It has to give all of them back.
#[track_caller]
fn cost(action: impl FnOnce()) -> usize {
    let before = (MADE.get(), GIVEN_BACK.get());
    action();
    let (made, given_back) = (MADE.get() - before.0, GIVEN_BACK.get() - before.1);
    assert_eq!(made, given_back, "allocations made, and given back");
    made
}

/// A closure with `WORDS` words of captures.
fn closure<const WORDS: usize>() -> impl FnOnce(usize) + Send + 'static {
    let captured = [1; WORDS];
    move |value| assert_eq!(captured.iter().sum::<usize>() + value, WORDS)
}

/// A fallback with `WORDS` words of captures.
fn fallback<const WORDS: usize>() -> impl FnOnce() -> usize + Send + 'static {
    let captured = [0; WORDS];
    move || captured.iter().sum::<usize>()
}

#[test]
fn callbacks_cost_one_allocation_or_none() {
    assert_eq!(cost(|| Callback::new(closure::<9>()).call(0)), 1);
    assert_eq!(cost(|| drop(Callback::new(closure::<9>()))), 1);
    assert_eq!(cost(|| Callback::must_call(closure::<9>(), fallback::<9>()).call(0)), 1);
    assert_eq!(cost(|| drop(Callback::must_call(closure::<0>(), fallback::<9>()))), 1);
    assert_eq!(cost(|| Callback::new(closure::<0>()).call(0)), 0);
    assert_eq!(cost(|| drop(Callback::must_call(closure::<0>(), fallback::<0>()))), 0);
}

/// So that a closure which submits the next request finds the memory of this one, and a slow one holds none.
#[test]
fn memory_is_given_back_before_the_closure_runs() {
    let given_back = |finish: fn(Callback<usize>)| {
        let (before, seen) = (GIVEN_BACK.get(), Arc::new(AtomicUsize::new(0)));
        let (note, captured) = (Arc::clone(&seen), [1; 9]);
        let closure = move |_| note.store(GIVEN_BACK.get() - before + captured[0], Ordering::Relaxed);
        finish(Callback::must_call(closure, || 0));
        seen.load(Ordering::Relaxed) - 1
    };
    assert_eq!(given_back(|callback| callback.call(0)), 1);
    assert_eq!(given_back(drop), 1);
    assert_eq!(given_back(|callback| CallbackSlot::from(callback).complete(0).unwrap()), 1);
}

/// A destructor that panics, on every path of every form: what held it is given back, and `cost` sees if it is not.
#[test]
fn a_panic_keeps_no_memory() {
    struct Bomb([usize; 9]);

    impl Drop for Bomb {
        fn drop(&mut self) {
            resume_unwind(Box::new(self.0[0]));
        }
    }

    fn bomb() -> impl FnOnce(usize) + Send + 'static {
        let bomb = Bomb([1; 9]);
        move |_| drop(bomb)
    }

    fn fails<R>(action: impl FnOnce() -> R) {
        assert!(catch_unwind(AssertUnwindSafe(action)).is_err());
    }

    cost(|| fails(|| Callback::new(bomb()).call(0)));
    cost(|| fails(|| drop(Callback::new(bomb()))));
    cost(|| fails(|| CallbackSlot::new(bomb()).complete(0)));
    cost(|| fails(|| drop(CallbackSlot::new(bomb()))));
    cost(|| fails(|| SharedSlot::new(bomb()).complete(0)));
    cost(|| fails(|| drop(SharedSlot::new(bomb()))));
    cost(|| fails(|| InPlaceSlot::<usize>::new(bomb()).complete(0)));
    cost(|| fails(|| drop(InPlaceSlot::<usize>::new(bomb()))));
    cost(|| fails(|| drop(OptionCell::new(Box::new(Bomb([1; 9]))))));
}

#[test]
fn slots_cost_their_callback() {
    assert_eq!(cost(|| CallbackSlot::new(closure::<9>()).complete(0).unwrap()), 1);
    assert_eq!(cost(|| drop(CallbackSlot::new(closure::<9>()))), 1);
    assert_eq!(cost(|| CallbackSlot::new(closure::<0>()).complete(0).unwrap()), 0);
    assert_eq!(cost(|| drop(CallbackSlot::<usize>::empty())), 0);
}

#[test]
fn shared_slots_cost_one_allocation_whatever_becomes_of_them() {
    fn all_ways(make: impl Fn() -> SharedSlot<usize>) {
        assert_eq!(cost(|| drop(make())), 1, "the last handle goes");
        assert_eq!(cost(|| drop(make().clone())), 1, "the last of two goes");
        assert_eq!(cost(|| make().complete(0).unwrap()), 1);
        let two = || {
            let slot = make();
            let other = slot.clone();
            slot.complete(0).unwrap();
            drop(slot);
            other.complete(0).unwrap_err();
        };
        assert_eq!(cost(two), 1, "the winner goes first");
    }
    all_ways(|| SharedSlot::new(closure::<0>()));
    all_ways(|| SharedSlot::new(closure::<9>()));
    all_ways(|| SharedSlot::must_call(closure::<0>(), fallback::<0>()));
    all_ways(|| SharedSlot::must_call(closure::<9>(), fallback::<9>()));
}

#[test]
fn slots_in_place_cost_nothing_for_what_fits() {
    assert_eq!(cost(|| InPlaceSlot::<usize>::new(closure::<8>()).complete(0).unwrap()), 0);
    assert_eq!(cost(|| drop(InPlaceSlot::<usize>::must_call(closure::<4>(), fallback::<4>()))), 0);
    assert_eq!(cost(|| InPlaceSlot::<usize>::new(closure::<9>()).complete(0).unwrap()), 1);
    assert_eq!(cost(|| drop(InPlaceSlot::<usize>::new(closure::<9>()))), 1);
    assert_eq!(cost(|| drop(InPlaceSlot::<usize, 0>::new(closure::<0>()))), 0);
}

#[test]
fn cells_cost_their_value() {
    let cell = OptionCell::<Box<usize>>::empty();
    assert_eq!(cost(|| drop((cell.put(Box::new(7)), cell.try_put(Box::new(8)), cell.take()))), 2);
    assert_eq!(cost(|| drop(OptionCell::new(Box::new(7)))), 1);
}

#[cfg(any(feature = "wait", feature = "future"))]
mod reply {
    use super::cost;
    use callback_slot::reply;

    #[test]
    fn replies_cost_one_allocation() {
        let answered = || {
            let (callback, reply) = reply();
            callback.call(7);
            assert_eq!(reply.try_into_value().unwrap(), Ok(7));
        };
        assert_eq!(cost(answered), 1);
        assert_eq!(cost(|| drop(reply::<usize>())), 1, "nobody calls, nobody waits");
    }

    #[cfg(feature = "future")]
    #[test]
    fn wakers_cost_nothing() {
        use std::future::Future;
        use std::pin::Pin;
        use std::sync::Arc;
        use std::task::{Context, Wake, Waker};

        struct Nobody;

        impl Wake for Nobody {
            fn wake(self: Arc<Self>) {}
        }

        let waker = Waker::from(Arc::new(Nobody));
        let polled = |called: bool| {
            let (callback, mut reply) = reply::<usize>();
            let mut context = Context::from_waker(&waker);
            for _ in 0..3 {
                assert!(Pin::new(&mut reply).poll(&mut context).is_pending());
            }
            if called {
                callback.call(7);
            }
        };
        assert_eq!(cost(|| polled(false)), 1);
        assert_eq!(cost(|| polled(true)), 1);
    }

    #[cfg(feature = "wait")]
    #[test]
    fn waits_cost_nothing() {
        use callback_slot::WaitError;
        use std::time::Duration;

        // The thread's own handle is made on first use, and kept.
        let _ = std::thread::current();
        let waited = || {
            let (callback, reply) = reply::<usize>();
            let Err(WaitError::TimedOut(reply)) = reply.wait_timeout(Duration::ZERO) else { unreachable!() };
            drop(reply);
            drop(callback);
        };
        assert_eq!(cost(waited), 1);
    }
}
