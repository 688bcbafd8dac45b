//! Where a blocking call waits for its one answer: a single allocation that the call and its callback share, where a
//! channel makes three.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// A place for one answer, and the two handles to it.
struct Place<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

enum State<T> {
    Awaited,
    Here(T),
    /// The sender went without a word.
    Gone,
}

/// The callback's handle.
pub(super) struct Sender<T>(Arc<Place<T>>);

/// The call's handle.
pub(super) struct Answer<T>(Arc<Place<T>>);

/// A pair of them.
pub(super) fn answer<T>() -> (Sender<T>, Answer<T>) {
    let place = Arc::new(Place { state: Mutex::new(State::Awaited), changed: Condvar::new() });
    (Sender(Arc::clone(&place)), Answer(place))
}

impl<T> Sender<T> {
    pub(super) fn send(self, answer: T) {
        *self.0.state.lock() = State::Here(answer);
        // The drop that follows wakes the other side.
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if matches!(*state, State::Awaited) {
            *state = State::Gone;
        }
        drop(state);
        self.0.changed.notify_one();
    }
}

impl<T> Answer<T> {
    /// Blocks until the answer is there; `None` where the sender was dropped without one.
    pub(super) fn wait(self) -> Option<T> {
        let mut state = self.0.state.lock();
        while matches!(*state, State::Awaited) {
            self.0.changed.wait(&mut state);
        }
        match std::mem::replace(&mut *state, State::Gone) {
            State::Here(answer) => Some(answer),
            State::Awaited | State::Gone => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_once_and_a_sender_that_goes_keeps_nobody_waiting() {
        let (sender, waits) = answer();
        let waiter = std::thread::spawn(move || waits.wait());
        sender.send(7);
        assert_eq!(waiter.join().unwrap(), Some(7));
        let (sender, waits) = answer::<u32>();
        let waiter = std::thread::spawn(move || waits.wait());
        drop(sender);
        assert_eq!(waiter.join().unwrap(), None);
    }
}
