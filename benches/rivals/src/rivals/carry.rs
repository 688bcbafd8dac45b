//! Channels that carry the closure: it is sent at once, and the receiver is what the far side completes.

use std::hint::black_box;

use super::{BoxedCallback, Sealed};
use crate::{
    contender::{HandOver, Slot},
    work::{Closure, Guarded},
};

const SENT: &str = "the closure was sent when the channel was opened";

macro_rules! carry {
    ($(#[$doc:meta])* $name:ident, $far:ty, $open:expr, $receive:expr) => {
        $(#[$doc])*
        pub struct $name;

        impl HandOver for $name {
            type Near<F: Closure> = ();
            type Far = $far;

            #[inline(always)]
            fn open<F: Closure>(closure: F) -> ((), Self::Far) {
                let open: fn(BoxedCallback) -> Self::Far = $open;
                ((), open(Box::new(closure)))
            }

            #[inline(always)]
            fn finish(far: Self::Far, value: u64) {
                let receive: fn(Self::Far) -> BoxedCallback = $receive;
                black_box(&far);
                receive(far)(value);
            }

            #[inline(always)]
            fn collect<F: Closure>((): ()) {}

            #[inline(always)]
            fn abandon<F: Closure, G: FnOnce() -> u64 + Send + 'static>(closure: F, fallback: G) {
                let guarded = Guarded::new(closure, fallback);
                let ((), far) = Self::open(move |value| guarded.call(value));
                black_box(&far);
            }
        }
    };
}

carry! {
    /// `oneshot`.
    OneshotCarry, oneshot::Receiver<BoxedCallback>,
    |callback| {
        let (sender, receiver) = oneshot::channel();
        sender.send(callback).expect(SENT);
        receiver
    },
    |receiver| receiver.try_recv().expect(SENT)
}

carry! {
    /// `tokio::sync::oneshot`.
    TokioCarry, tokio::sync::oneshot::Receiver<BoxedCallback>,
    |callback| {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        assert!(sender.send(callback).is_ok(), "{SENT}");
        receiver
    },
    |mut receiver| receiver.try_recv().expect(SENT)
}

carry! {
    /// `futures::channel::oneshot`.
    FuturesCarry, futures_channel::oneshot::Receiver<BoxedCallback>,
    |callback| {
        let (sender, receiver) = futures_channel::oneshot::channel();
        assert!(sender.send(callback).is_ok(), "{SENT}");
        receiver
    },
    |mut receiver| receiver.try_recv().expect(SENT).expect(SENT)
}

carry! {
    /// `catty`.
    CattyCarry, catty::Receiver<BoxedCallback>,
    |callback| {
        let (sender, receiver) = catty::oneshot();
        assert!(sender.send(callback).is_ok(), "{SENT}");
        receiver
    },
    |mut receiver| receiver.try_recv().expect(SENT).expect(SENT)
}

carry! {
    /// `async-oneshot`.
    AsyncOneshotCarry, async_oneshot::Receiver<Sealed>,
    |callback| {
        let (mut sender, receiver) = async_oneshot::oneshot();
        sender.send(Sealed(callback)).expect(SENT);
        receiver
    },
    |receiver| match receiver.try_recv() {
        Ok(Sealed(callback)) => callback,
        Err(_) => unreachable!("{SENT}"),
    }
}

carry! {
    /// `std::sync::mpsc`, with room for one.
    MpscCarry, std::sync::mpsc::Receiver<BoxedCallback>,
    |callback| {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        sender.send(callback).expect(SENT);
        receiver
    },
    |receiver| receiver.try_recv().expect(SENT)
}

/// `crossbeam-channel` with room for one. Its receiver may be shared, so it can also be raced for.
pub struct CrossbeamCarry(
    crossbeam_channel::Receiver<BoxedCallback>,
    // Kept, so that a loser finds the channel empty and not closed.
    #[expect(dead_code, reason = "held for its drop")] crossbeam_channel::Sender<BoxedCallback>,
);

impl Slot for CrossbeamCarry {
    #[inline(always)]
    fn armed<F: Closure>(closure: F) -> Self {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let boxed: BoxedCallback = Box::new(closure);
        sender.try_send(boxed).expect(SENT);
        CrossbeamCarry(receiver, sender)
    }

    #[inline(always)]
    fn complete(&self, value: u64) -> bool {
        self.0.try_recv().map(|callback| callback(value)).is_ok()
    }
}
