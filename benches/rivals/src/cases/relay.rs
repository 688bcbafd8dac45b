//! A way between two threads that does not sleep, so that waking up is not what is measured.

use std::{
    hint,
    sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel},
    thread,
};

/// Tries before the processor is offered to somebody else.
const SPINS: u32 = 200;

/// Both ends of a relay with room for `room` messages.
pub(super) fn relay<M>(room: usize) -> (Sending<M>, Arriving<M>) {
    let (sender, receiver) = sync_channel(room);
    (Sending(sender), Arriving(receiver))
}

pub(super) struct Sending<M>(SyncSender<M>);

pub(super) struct Arriving<M>(Receiver<M>);

impl<M> Sending<M> {
    /// Sends, as soon as there is room. A message that nobody will receive is dropped.
    pub(super) fn send(&self, mut message: M) {
        let mut patience = SPINS;
        while let Err(TrySendError::Full(refused)) = self.0.try_send(message) {
            message = refused;
            wait(&mut patience);
        }
    }
}

impl<M> Arriving<M> {
    /// The next message; `None` when no more will come.
    pub(super) fn next(&self) -> Option<M> {
        let mut patience = SPINS;
        loop {
            match self.0.try_recv() {
                Ok(message) => return Some(message),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => wait(&mut patience),
            }
        }
    }
}

fn wait(patience: &mut u32) {
    if *patience > 0 {
        *patience -= 1;
        hint::spin_loop();
    } else {
        thread::yield_now();
    }
}
