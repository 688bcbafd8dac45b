//! Attacks on replies: wakers, values and owners that do what no executor does, in the middle of a poll, a call or a drop.

use crate::support::{Count, OnDrop};
use callback_slot::{reply, Callback, Dropped, Reply};
use std::future::Future;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

type Deed = Box<dyn FnOnce() + Send>;

/// What a waker does when it is cloned, woken or dropped, once each. Its memory is its own, so that Miri sees a waker that is
/// used twice or forgotten.
#[derive(Default)]
struct Deeds {
    clone: Mutex<Option<Deed>>,
    wake: Mutex<Option<Deed>>,
    drop: Mutex<Option<Deed>>,
    clones: Count,
    wakes: Count,
    drops: Count,
}

fn once(deed: impl FnOnce() + Send + 'static) -> Mutex<Option<Deed>> {
    Mutex::new(Some(Box::new(deed)))
}

/// Does what is left to be done, with no lock held: it may come back, and it may panic.
fn act(deed: &Mutex<Option<Deed>>) {
    let deed = deed.lock().unwrap().take();
    if let Some(deed) = deed {
        deed();
    }
}

const VTABLE: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: `data` is that of a waker of `Deeds::waker`, which is borrowed for the call.
        let deeds = unsafe { &*data.cast::<Arc<Deeds>>() };
        act(&deeds.clone);
        deeds.clones.add();
        RawWaker::new(Box::into_raw(Box::new(Arc::clone(deeds))).cast(), &VTABLE)
    },
    |data| {
        // SAFETY: as above, and the waker is given up.
        let deeds = unsafe { Box::from_raw(data.cast::<Arc<Deeds>>().cast_mut()) };
        deeds.wakes.add();
        act(&deeds.wake);
    },
    |_| unreachable!("nobody wakes by reference"),
    |data| {
        // SAFETY: as above, and the waker is given up.
        let deeds = unsafe { Box::from_raw(data.cast::<Arc<Deeds>>().cast_mut()) };
        deeds.drops.add();
        act(&deeds.drop);
    },
);

impl Deeds {
    /// Polls with a waker of these deeds, of which only what the reply keeps is left afterwards.
    fn poll(self: &Arc<Self>, reply: &mut Reply<OnDrop>) -> Poll<Result<OnDrop, Dropped>> {
        let data = Box::new(Arc::clone(self));
        // SAFETY: the table keeps its contract: each waker has a box of its own, which goes when the waker goes.
        let waker = unsafe { Waker::from_raw(RawWaker::new((&raw const *data).cast(), &VTABLE)) };
        let waker = std::mem::ManuallyDrop::new(waker);
        Pin::new(reply).poll(&mut Context::from_waker(&waker))
    }

    /// Clones made, woken, dropped.
    fn counts(&self) -> (usize, usize, usize) {
        (self.clones.get(), self.wakes.get(), self.drops.get())
    }
}

fn fails(action: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(action)).is_err()
}

fn fail() {
    resume_unwind(Box::new("on purpose"));
}

#[test]
fn a_waker_that_panics_when_it_is_cloned_leaves_the_one_before() {
    let values = Count::new();
    let (callback, mut reply) = reply();
    let (good, bad) = (Arc::new(Deeds::default()), Arc::new(Deeds { clone: once(fail), ..Deeds::default() }));
    assert!(good.poll(&mut reply).is_pending());
    assert!(fails(|| drop(bad.poll(&mut reply))));
    callback.call(values.on_drop());
    assert_eq!((good.counts(), bad.counts()), ((1, 1, 0), (0, 0, 0)));
    assert!(matches!(bad.poll(&mut reply), Poll::Ready(Ok(value)) if value.touch() == 7));
    assert_eq!((bad.counts(), values.get()), ((0, 0, 0), 1), "an answer needs no waker");
}

/// The callback is called, or dropped, while the poll clones its waker: the same poll has the answer, and wakes nobody.
#[test]
fn a_waker_that_answers_when_it_is_cloned() {
    for called in [true, false] {
        for polled_before in [true, false] {
            let (values, before) = (Count::new(), Arc::new(Deeds::default()));
            let (callback, mut reply) = reply();
            if polled_before {
                assert!(before.poll(&mut reply).is_pending());
            }
            let value = values.on_drop();
            let deed = move || if called { callback.call(value) } else { drop(callback) };
            let waker = Arc::new(Deeds { clone: once(deed), ..Deeds::default() });
            assert!(matches!(waker.poll(&mut reply), Poll::Ready(answer) if answer.is_ok() == called));
            assert_eq!(waker.counts(), (1, 0, 1), "not woken: it has its answer");
            let woken = usize::from(polled_before);
            assert_eq!((before.counts(), values.get()), ((woken, woken, 0), 1));
        }
    }
}

/// The callback is called while a poll drops the waker of the poll before: the new one is woken, and has its answer already.
#[test]
fn a_replaced_waker_that_answers_when_it_is_dropped() {
    let values = Count::new();
    let (callback, mut reply) = reply();
    let value = values.on_drop();
    let old = Arc::new(Deeds { drop: once(move || callback.call(value)), ..Deeds::default() });
    let new = Arc::new(Deeds::default());
    assert!(old.poll(&mut reply).is_pending());
    assert!(matches!(new.poll(&mut reply), Poll::Ready(Ok(_))));
    assert_eq!((old.counts(), new.counts(), values.get()), ((1, 0, 1), (1, 1, 0), 1));
}

#[test]
fn a_waker_that_answers_when_its_reply_goes() {
    let values = Count::new();
    let (callback, mut reply) = reply();
    let value = values.on_drop();
    let waker = Arc::new(Deeds { drop: once(move || callback.call(value)), ..Deeds::default() });
    assert!(waker.poll(&mut reply).is_pending());
    drop(reply);
    assert_eq!((waker.counts(), values.get()), ((1, 0, 1), 1));
}

/// A must-call that falls back while something unwinds calls a callback whose waker panics: caught, and not a second panic.
#[cfg(feature = "std")]
#[test]
fn a_waker_that_panics_while_something_unwinds() {
    use callback_slot::SharedSlot;
    let values = Count::new();
    let (callback, mut reply) = reply();
    let waker = Arc::new(Deeds { wake: once(fail), ..Deeds::default() });
    assert!(waker.poll(&mut reply).is_pending());
    let value = values.on_drop();
    let slot = SharedSlot::must_call(move |value| callback.call(value), move || value);
    assert!(fails(move || {
        let _slot = slot;
        fail();
    }));
    assert!(matches!(waker.poll(&mut reply), Poll::Ready(Ok(_))));
    assert_eq!((waker.counts(), values.get()), ((1, 1, 0), 1));
}

/// A value whose destructor panics goes once, with whoever is last, and takes the shared memory along.
#[test]
fn a_value_that_panics_when_it_is_dropped() {
    struct Bomb(OnDrop);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert_eq!(self.0.touch(), 7);
            fail();
        }
    }

    let drops = Count::new();
    let (callback, gone) = reply();
    drop(gone);
    assert!(fails(|| callback.call(Bomb(drops.on_drop()))), "the value's panic is the caller's");
    assert_eq!(drops.get(), 1);
    let (callback, unread) = reply();
    callback.call(Bomb(drops.on_drop()));
    assert!(fails(|| drop(unread)));
    assert_eq!(drops.get(), 2);
}

/// A value that brings the callback and the reply of another hand-off, and a waker that owns the callback it waits for.
#[test]
fn replies_that_travel_inside_each_other() {
    let (outer, outer_reply) = reply::<(Callback<OnDrop>, Reply<OnDrop>)>();
    let (inner, mut inner_reply) = reply();
    let waker = Arc::new(Deeds::default());
    assert!(waker.poll(&mut inner_reply).is_pending());
    outer.call((inner, inner_reply));
    drop(outer_reply);
    assert_eq!(waker.counts(), (1, 1, 0), "the callback went first");

    let (callback, mut waiting) = reply::<OnDrop>();
    let owned = Arc::new(Mutex::new(Some(callback)));
    let waker = Arc::new(Deeds { drop: once(move || drop(owned)), ..Deeds::default() });
    assert!(waker.poll(&mut waiting).is_pending());
    drop(waiting);
    assert_eq!(waker.counts(), (1, 0, 1), "it waits for what it owns, and goes with the reply");
}
