//! Channels as they are really used: the result travels, and the caller runs its own code when it has arrived.

use std::hint::black_box;

use crate::{contender::HandOver, work::Closure};

const OPEN: &str = "the receiver is alive";

macro_rules! travel {
    ($(#[$doc:meta])* $name:ident, $near:ty, $far:ty, $open:expr, $send:expr, $receive:expr) => {
        $(#[$doc])*
        pub struct $name;

        impl HandOver for $name {
            type Near<F: Closure> = ($near, F);
            type Far = $far;

            #[inline(always)]
            fn open<F: Closure>(closure: F) -> (Self::Near<F>, Self::Far) {
                let (sender, receiver) = $open;
                ((receiver, closure), sender)
            }

            #[inline(always)]
            fn finish(far: Self::Far, value: u64) {
                let send: fn(Self::Far, u64) -> bool = $send;
                black_box(&far);
                assert!(send(far, value), "{OPEN}");
            }

            #[inline(always)]
            fn collect<F: Closure>((receiver, closure): Self::Near<F>) {
                let receive: fn($near) -> Option<u64> = $receive;
                closure(receive(receiver).expect("the far side has sent"));
            }

            #[inline(always)]
            fn abandon<F: Closure, G: FnOnce() -> u64 + Send + 'static>(closure: F, fallback: G) {
                let ((receiver, closure), sender) = Self::open(closure);
                drop(black_box(sender));
                let receive: fn($near) -> Option<u64> = $receive;
                closure(receive(receiver).unwrap_or_else(fallback));
            }
        }
    };
}

travel! {
    /// `oneshot`.
    OneshotTravel, oneshot::Receiver<u64>, oneshot::Sender<u64>,
    oneshot::channel(),
    |sender, value| sender.send(value).is_ok(),
    |receiver| receiver.try_recv().ok()
}

travel! {
    /// `tokio::sync::oneshot`.
    TokioTravel, tokio::sync::oneshot::Receiver<u64>, tokio::sync::oneshot::Sender<u64>,
    tokio::sync::oneshot::channel(),
    |sender, value| sender.send(value).is_ok(),
    |mut receiver| receiver.try_recv().ok()
}

travel! {
    /// `futures::channel::oneshot`.
    FuturesTravel, futures_channel::oneshot::Receiver<u64>, futures_channel::oneshot::Sender<u64>,
    futures_channel::oneshot::channel(),
    |sender, value| sender.send(value).is_ok(),
    |mut receiver| receiver.try_recv().ok().flatten()
}

travel! {
    /// `catty`.
    CattyTravel, catty::Receiver<u64>, catty::Sender<u64>,
    catty::oneshot(),
    |sender, value| sender.send(value).is_ok(),
    |mut receiver| receiver.try_recv().ok().flatten()
}

travel! {
    /// `async-oneshot`.
    AsyncOneshotTravel, async_oneshot::Receiver<u64>, async_oneshot::Sender<u64>,
    async_oneshot::oneshot(),
    |mut sender, value| sender.send(value).is_ok(),
    |receiver| receiver.try_recv().ok()
}

travel! {
    /// `std::sync::mpsc`, with room for one.
    MpscTravel, std::sync::mpsc::Receiver<u64>, std::sync::mpsc::SyncSender<u64>,
    std::sync::mpsc::sync_channel(1),
    |sender, value| sender.try_send(value).is_ok(),
    |receiver| receiver.try_recv().ok()
}

travel! {
    /// `crossbeam-channel` with room for one.
    CrossbeamTravel, crossbeam_channel::Receiver<u64>, crossbeam_channel::Sender<u64>,
    crossbeam_channel::bounded(1),
    |sender, value| sender.try_send(value).is_ok(),
    |receiver| receiver.try_recv().ok()
}
