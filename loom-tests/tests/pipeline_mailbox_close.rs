//! The mailbox while it closes: a message is received or handed back, never both and never neither, and nobody waits on.

#[cfg(not(storage_pipeline_loom))]
compile_error!("the models of the pipeline need --cfg storage_pipeline_loom in RUSTFLAGS");

use std::collections::VecDeque;

use loom::thread;
use loom_tests::mail::{Message, message, open, receive_to_the_end, sender, sorted};
use loom_tests::model;
use storage_pipeline::mailbox::{Mailbox, Received};

#[test]
fn close_races_two_senders() {
    model(|| {
        let mailbox = Mailbox::default();
        let senders = [sender(&mailbox, &["a1", "a2"]), sender(&mailbox, &["b1"])];
        mailbox.close();
        let mut names = receive_to_the_end(&mailbox);
        for sender in senders {
            names.extend(sender.join().unwrap());
        }
        assert_eq!(sorted(names), ["a1", "a2", "b1"], "received or handed back");
        assert!(mailbox.is_empty(), "nothing is taken after the end was seen");
    });
}

#[test]
fn close_races_a_waiting_receiver() {
    model(|| {
        let mailbox = Mailbox::<Message>::default();
        let other = mailbox.clone();
        let receiver = thread::spawn(move || receive_to_the_end(&other));
        mailbox.close();
        assert!(receiver.join().unwrap().is_empty());
    });
}

#[test]
fn close_wakes_two_waiting_receivers() {
    model(|| {
        let mailbox = Mailbox::<Message>::default();
        let receivers = [0, 1].map(|_| {
            let mailbox = mailbox.clone();
            thread::spawn(move || receive_to_the_end(&mailbox))
        });
        mailbox.close();
        for receiver in receivers {
            assert!(receiver.join().unwrap().is_empty());
        }
    });
}

#[test]
fn close_races_a_waiting_batch_receiver() {
    model(|| {
        let mailbox = Mailbox::<Message>::default();
        let sender = sender(&mailbox, &["a1"]);
        let closer = mailbox.clone();
        let closer = thread::spawn(move || closer.close());
        let (mut names, mut batch) = (Vec::new(), VecDeque::new());
        while mailbox.receive_all(&mut batch, None) != Received::Closed {
            names.extend(batch.drain(..).map(open));
        }
        closer.join().unwrap();
        names.extend(sender.join().unwrap());
        assert_eq!(names, ["a1"], "received or handed back");
    });
}

#[test]
fn two_receivers_share_what_came_before_the_close() {
    model(|| {
        let mailbox = Mailbox::default();
        let other = mailbox.clone();
        let receiver = thread::spawn(move || receive_to_the_end(&other));
        let sender = sender(&mailbox, &["a1"]);
        assert!(mailbox.send(message("b1")).is_ok(), "it is open");
        mailbox.close();
        let mut names = receive_to_the_end(&mailbox);
        names.extend(receiver.join().unwrap());
        names.extend(sender.join().unwrap());
        assert_eq!(sorted(names), ["a1", "b1"], "received or handed back");
    });
}
