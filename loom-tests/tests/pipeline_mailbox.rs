//! The mailbox while it is open: what is sent is received once, in its sender's order, and nobody sleeps through it.

#[cfg(not(storage_pipeline_loom))]
compile_error!("the models of the pipeline need --cfg storage_pipeline_loom in RUSTFLAGS");

use std::collections::VecDeque;
use std::time::Instant;

use loom::thread;
use loom_tests::mail::{message, open, sender, sorted};
use loom_tests::model;
use storage_pipeline::mailbox::{Disturb, Mailbox, Received, Refused};

#[test]
fn two_senders_race_one_receiver() {
    model(|| {
        let mailbox = Mailbox::default();
        let senders = [sender(&mailbox, &["a1", "a2"]), sender(&mailbox, &["b1"])];
        let got: Vec<_> = (0..3).map(|_| open(mailbox.receive().expect("nobody closes it"))).collect();
        for sender in senders {
            assert!(sender.join().unwrap().is_empty());
        }
        let of_a: Vec<_> = got.iter().copied().filter(|name| name.starts_with('a')).collect();
        assert_eq!(of_a, ["a1", "a2"], "in their sender's order");
        assert_eq!(sorted(got), ["a1", "a2", "b1"]);
        assert!(mailbox.is_empty());
    });
}

#[test]
fn two_senders_race_one_batch_receiver() {
    model(|| {
        let mailbox = Mailbox::default();
        let senders = [sender(&mailbox, &["a1", "a2"]), sender(&mailbox, &["b1"])];
        let (mut got, mut batch) = (Vec::new(), VecDeque::new());
        while got.len() < 3 {
            assert_eq!(mailbox.receive_all(&mut batch, None), Received::Some);
            got.extend(batch.drain(..).map(open));
        }
        for sender in senders {
            assert!(sender.join().unwrap().is_empty());
        }
        let of_a: Vec<_> = got.iter().copied().filter(|name| name.starts_with('a')).collect();
        assert_eq!(of_a, ["a1", "a2"], "in their sender's order");
        assert_eq!(sorted(got), ["a1", "a2", "b1"]);
    });
}

/// A look whose time is up at once finds the message or leaves it for the next, and leaves nobody believing that
/// somebody else waits.
#[test]
fn a_short_look_races_a_sender() {
    model(|| {
        let mailbox = Mailbox::default();
        let sender = sender(&mailbox, &["a1"]);
        let mut batch = VecDeque::new();
        if mailbox.receive_all(&mut batch, Some(Instant::now())) == Received::TimedOut {
            assert_eq!(mailbox.receive_all(&mut batch, None), Received::Some);
        }
        assert!(sender.join().unwrap().is_empty());
        assert_eq!(batch.into_iter().map(open).collect::<Vec<_>>(), ["a1"]);
    });
}

/// Who does not want to be woken for it finds what was left with the next message, and in its sender's order.
#[test]
fn a_message_that_is_left_comes_with_the_next_one() {
    model(|| {
        let mailbox = Mailbox::default();
        let other = mailbox.clone();
        let sender = thread::spawn(move || {
            assert!(other.leave(message("a1")).is_ok());
            assert!(other.send(message("a2")).is_ok());
        });
        let (mut got, mut batch) = (Vec::new(), VecDeque::new());
        while got.len() < 2 {
            assert_eq!(mailbox.receive_if(&mut batch, None, Disturb::Undisturbed), Received::Some);
            got.extend(batch.drain(..).map(open));
        }
        sender.join().unwrap();
        assert_eq!(got, ["a1", "a2"]);
    });
}

/// Once the receiver wants to know, what was left before wakes it no less than what is left from then on.
#[test]
fn leave_races_a_receiver_that_changes_its_mind() {
    model(|| {
        let mailbox = Mailbox::default();
        let sender = sender(&mailbox, &["b1"]);
        let other = mailbox.clone();
        let leaver = thread::spawn(move || other.leave(message("a1")).is_ok());
        let (mut got, mut batch) = (Vec::new(), VecDeque::new());
        assert_eq!(mailbox.receive_if(&mut batch, None, Disturb::Undisturbed), Received::Some);
        got.extend(batch.drain(..).map(open));
        while !got.contains(&"a1") {
            assert_eq!(mailbox.receive_all(&mut batch, None), Received::Some);
            got.extend(batch.drain(..).map(open));
        }
        assert!(leaver.join().unwrap() && sender.join().unwrap().is_empty());
        assert_eq!(got.len() + mailbox.len(), 2);
    });
}

#[test]
fn two_senders_race_for_the_last_place() {
    model(|| {
        let mailbox = Mailbox::default();
        let other = mailbox.clone();
        let there = thread::spawn(move || other.try_send(message("a"), 1));
        let here = mailbox.try_send(message("b"), 1);
        let there = there.join().unwrap();
        assert_eq!(mailbox.len(), 1, "as many as the senders allow, and no fewer");
        let kept = open(mailbox.receive().expect("one of them"));
        let back = match (here, there) {
            (Ok(()), Err(Refused::Full(back))) | (Err(Refused::Full(back)), Ok(())) => open(back),
            _ => panic!("one is taken, the other handed back as too much"),
        };
        assert_eq!(sorted(vec![kept, back]), ["a", "b"]);
    });
}

#[test]
fn a_place_that_gets_free_is_taken_or_refused() {
    model(|| {
        let mailbox = Mailbox::default();
        assert!(mailbox.send(message("a")).is_ok());
        let other = mailbox.clone();
        let sender = thread::spawn(move || other.try_send(message("b"), 1));
        assert_eq!(mailbox.receive().map(open), Some("a"));
        match sender.join().unwrap() {
            Ok(()) => assert_eq!(mailbox.receive().map(open), Some("b")),
            Err(Refused::Full(back)) => assert_eq!((open(back), mailbox.len()), ("b", 0)),
            Err(Refused::Closed(_)) => panic!("nobody closes it"),
        }
    });
}

#[test]
fn two_receivers_get_one_message_each() {
    model(|| {
        let mailbox = Mailbox::default();
        let receivers = [0, 1].map(|_| {
            let mailbox = mailbox.clone();
            thread::spawn(move || open(mailbox.receive().expect("one for each")))
        });
        for name in ["a1", "a2"] {
            assert!(mailbox.send(message(name)).is_ok());
        }
        let got = receivers.map(|receiver| receiver.join().unwrap()).to_vec();
        assert_eq!(sorted(got), ["a1", "a2"]);
    });
}
