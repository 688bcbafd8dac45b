//! A batch applied by one thread of a pool: first the write, then all callbacks, and one that panics harms nobody.

use callback_slot::{CallOutcome, InPlaceSlot};
use std::sync::mpsc;
use std::thread;

/// A command on its way, with the callback inside: no allocation for what it captures.
struct Command {
    key: u64,
    callback: InPlaceSlot<u64>,
}

fn apply(batch: Vec<Command>) -> usize {
    let index = batch.iter().map(|command| command.key).sum();
    let panicked = |command: &Command| match command.callback.complete_catching(index) {
        Ok(CallOutcome::Returned) => false,
        Ok(CallOutcome::Panicked(_)) => true,
        Err(_) => unreachable!("this pool is the only one who completes"),
    };
    batch.iter().filter(|&command| panicked(command)).count()
}

fn main() {
    let (told, callers) = mpsc::channel();
    let batch = (0..8).map(|key| {
        let told = told.clone();
        let callback = InPlaceSlot::new(move |index| match key {
            // A panic without a message.
            3 => std::panic::resume_unwind(Box::new("a caller's fault")),
            _ => told.send((key, index)).unwrap(),
        });
        Command { key, callback }
    });
    let batch = batch.collect();
    drop(told);

    let panicked = thread::spawn(move || apply(batch)).join().unwrap();
    let answers: Vec<_> = callers.iter().collect();
    println!("{} callers told, {panicked} callback panicked", answers.len());
    assert_eq!((answers.len(), panicked), (7, 1));
}
