//! The queue in front of every thread. A refused message comes back to its sender with everything it owns.

use std::{collections::VecDeque, mem, time::Instant};

use crate::primitive::{Arc, Condvar, Mutex, wait, wait_until};

/// A handle to a queue; clones share it. Any number of threads send, any number receive.
///
/// Ways in: [`send`](Self::send) for messages whose room was reserved when their command was admitted, which is why it
/// knows no "full"; [`try_send`](Self::try_send) for the rest; [`leave`](Self::leave) for what can wait until the
/// receiver looks anyway.
#[derive(Debug)]
pub struct Mailbox<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    closed: bool,
    /// Receivers that wait. Nobody is notified where nobody waits.
    waiting: usize,
    /// A receiver that waits asked not to be woken by messages that are only left.
    undisturbed: bool,
}

/// A message that was not taken, and why.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the message comes back with everything it owns"]
pub enum Refused<T> {
    /// The queue holds as many messages as the sender allows.
    Full(T),
    /// The queue was closed.
    Closed(T),
}

impl<T> Refused<T> {
    /// The same refusal of something inside the message.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Refused<U> {
        match self {
            Self::Full(message) => Refused::Full(f(message)),
            Self::Closed(message) => Refused::Closed(f(message)),
        }
    }
}

/// What wakes a receiver that waits. Whatever is in the queue when it comes, it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturb {
    /// Every message.
    Always,
    /// Every message but those that are only left.
    Undisturbed,
}

/// What a receiver got.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Received {
    /// One message or more.
    Some,
    /// Nothing until the moment given.
    TimedOut,
    /// The queue is closed and empty: nothing will ever come again.
    Closed,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        let state = State { queue: VecDeque::new(), closed: false, waiting: 0, undisturbed: false };
        Self(Arc::new(Shared { state: Mutex::new(state), arrived: Condvar::new() }))
    }
}

impl<T> Mailbox<T> {
    /// Adds a message whose room was reserved at admission. Never blocks and is never full.
    ///
    /// # Errors
    /// The message itself, once the queue is closed.
    pub fn send(&self, message: T) -> Result<(), T> {
        self.try_send(message, usize::MAX).map_err(|refused| match refused {
            Refused::Full(message) | Refused::Closed(message) => message,
        })
    }

    /// Adds a message where fewer than `capacity` wait. Never blocks.
    ///
    /// # Errors
    /// The message itself, with the reason.
    pub fn try_send(&self, message: T, capacity: usize) -> Result<(), Refused<T>> {
        self.push(message, capacity, |state| state.waiting > 0)
    }

    /// Adds a message, and wakes a receiver only where it did not ask to be left [`undisturbed`](Disturb::Undisturbed).
    ///
    /// # Errors
    /// The message itself, once the queue is closed.
    pub fn leave(&self, message: T) -> Result<(), T> {
        let left = self.push(message, usize::MAX, |state| state.waiting > 0 && !state.undisturbed);
        left.map_err(|refused| match refused {
            Refused::Full(message) | Refused::Closed(message) => message,
        })
    }

    fn push(&self, message: T, capacity: usize, wakes: impl Fn(&State<T>) -> bool) -> Result<(), Refused<T>> {
        let mut state = self.0.state.lock();
        if state.closed {
            drop(state);
            return Err(Refused::Closed(message));
        }
        if state.queue.len() >= capacity {
            drop(state);
            return Err(Refused::Full(message));
        }
        state.queue.push_back(message);
        let wakes = wakes(&state);
        drop(state);
        if wakes {
            self.0.arrived.notify_one();
        }
        Ok(())
    }

    /// Waits for one message, for receivers that share the work.
    #[must_use]
    pub fn receive(&self) -> Option<T> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(message) = state.queue.pop_front() {
                return Some(message);
            }
            if state.closed {
                return None;
            }
            state.waiting += 1;
            state = wait(&self.0.arrived, state);
            state.waiting -= 1;
        }
    }

    /// Waits for messages until a moment, or for ever, and moves all of them into `into`, which must be empty.
    pub fn receive_all(&self, into: &mut VecDeque<T>, until: Option<Instant>) -> Received {
        self.receive_if(into, until, Disturb::Always)
    }

    /// The same for the only receiver of a queue, who may not want to be woken for what is only left.
    pub fn receive_if(&self, into: &mut VecDeque<T>, until: Option<Instant>, disturb: Disturb) -> Received {
        debug_assert!(into.is_empty(), "messages that were not handled would be reordered");
        let mut state = self.0.state.lock();
        state.undisturbed = disturb == Disturb::Undisturbed;
        loop {
            if !state.queue.is_empty() {
                mem::swap(&mut state.queue, into);
                return Received::Some;
            }
            if state.closed {
                return Received::Closed;
            }
            state.waiting += 1;
            state = match until {
                None => wait(&self.0.arrived, state),
                Some(moment) if Instant::now() >= moment => {
                    state.waiting -= 1;
                    return Received::TimedOut;
                }
                Some(moment) => wait_until(&self.0.arrived, state, moment),
            };
            state.waiting -= 1;
        }
    }

    /// Refuses further messages. What is queued is still received.
    pub fn close(&self) {
        self.0.state.lock().closed = true;
        self.0.arrived.notify_all();
    }

    /// How many messages wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.state.lock().queue.len()
    }

    /// Whether no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(storage_pipeline_loom)))]
mod tests {
    use super::*;
    use std::{thread, time::Duration};

    #[test]
    fn refused_messages_come_back() {
        let mailbox = Mailbox::default();
        assert_eq!(mailbox.try_send("a", 1), Ok(()));
        assert_eq!(mailbox.try_send("b", 1), Err(Refused::Full("b")));
        mailbox.close();
        assert_eq!(mailbox.try_send("c", 9), Err(Refused::Closed("c")));
        assert_eq!(mailbox.send("d"), Err("d"));
        assert_eq!(mailbox.receive(), Some("a"));
        assert_eq!(mailbox.receive(), None);
    }

    #[test]
    fn all_messages_arrive_once_and_in_their_senders_order() {
        let mailbox = Mailbox::default();
        let senders: Vec<_> = (0..4u32)
            .map(|sender| {
                let mailbox = mailbox.clone();
                thread::spawn(move || (0..500u32).for_each(|n| mailbox.send((sender, n)).unwrap()))
            })
            .collect();
        let mut next = [0; 4];
        let mut got = VecDeque::new();
        while next.iter().sum::<u32>() < 2000 {
            assert_eq!(mailbox.receive_all(&mut got, None), Received::Some);
            for (sender, n) in got.drain(..) {
                assert_eq!(next[sender as usize], n);
                next[sender as usize] += 1;
            }
        }
        senders.into_iter().for_each(|s| s.join().unwrap());
        assert!(mailbox.is_empty());
    }

    #[test]
    fn what_is_only_left_wakes_nobody_who_asked_for_peace_and_is_not_lost() {
        // One who may be disturbed would wait for very long.
        for (disturb, time) in
            [(Disturb::Always, Duration::from_secs(3600)), (Disturb::Undisturbed, Duration::from_millis(60))]
        {
            let mailbox = Mailbox::default();
            let sender = mailbox.clone();
            let until = Instant::now() + time;
            let receiver = thread::spawn(move || {
                let mut got = VecDeque::new();
                let received = mailbox.receive_if(&mut got, Some(until), disturb);
                (received, got)
            });
            // It waits, or its time is over already.
            while sender.0.state.lock().waiting == 0 && !receiver.is_finished() {
                thread::yield_now();
            }
            sender.leave("report").unwrap();
            let (received, got) = receiver.join().unwrap();
            // One who was left in peace finds the message when its own time comes.
            assert!(received == Received::Some || disturb == Disturb::Undisturbed);
            assert_eq!(got.len() + sender.len(), 1);
            assert_eq!(Instant::now() >= until, disturb == Disturb::Undisturbed);
        }
    }

    #[test]
    fn waiting_ends_at_its_moment_or_when_closed() {
        let mailbox = Mailbox::<u8>::default();
        let mut got = VecDeque::new();
        let soon = Instant::now() + Duration::from_millis(5);
        assert_eq!(mailbox.receive_all(&mut got, Some(soon)), Received::TimedOut);
        assert!(Instant::now() >= soon);
        let closer = mailbox.clone();
        let waiter = thread::spawn(move || mailbox.receive());
        closer.close();
        assert_eq!(waiter.join().unwrap(), None);
        assert_eq!(closer.receive_all(&mut got, None), Received::Closed);
    }
}
