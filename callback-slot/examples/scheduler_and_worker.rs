//! A slot that a scheduler and a worker share. The fallback says what is true when everybody has gone: a write that was
//! not begun never happens; one that was begun may have happened.

use callback_slot::SharedSlot;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;

#[derive(Debug, PartialEq)]
enum Outcome {
    Applied(u64),
    NotExecuted,
    Indeterminate,
}

struct Write {
    begun: Arc<AtomicBool>,
    slot: SharedSlot<Outcome>,
}

impl Write {
    fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }
}

/// Makes a write: the scheduler's handle, the worker's half, and the caller's end.
fn submit() -> (SharedSlot<Outcome>, Write, mpsc::Receiver<Outcome>) {
    let (told, caller) = mpsc::channel();
    let begun = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&begun);
    let fallback = move || match asked.load(Ordering::Relaxed) {
        true => Outcome::Indeterminate,
        false => Outcome::NotExecuted,
    };
    let slot = SharedSlot::must_call(move |outcome| told.send(outcome).unwrap(), fallback);
    (slot.clone(), Write { begun, slot }, caller)
}

fn main() {
    let (scheduler, write, caller) = submit();
    let worker = thread::spawn(move || {
        write.begin();
        write.slot.complete(Outcome::Applied(7)).is_ok()
    });
    assert!(worker.join().unwrap());
    assert!(!scheduler.is_armed(), "a sweeper sees that nothing is left to do");
    println!("a worker that succeeds: {:?}", caller.recv().unwrap());

    let (scheduler, write, caller) = submit();
    drop((scheduler, write));
    let outcome = caller.recv().unwrap();
    println!("everybody gone before it was begun: {outcome:?}");
    assert_eq!(outcome, Outcome::NotExecuted);

    let (scheduler, write, caller) = submit();
    let worker = thread::spawn(move || {
        write.begin();
        // A panic without a message: the worker dies with the write under way.
        std::panic::resume_unwind(Box::new("the worker's own fault"));
    });
    assert!(worker.join().is_err());
    drop(scheduler);
    let outcome = caller.recv().unwrap();
    println!("everybody gone after it was begun: {outcome:?}");
    assert_eq!(outcome, Outcome::Indeterminate);
}
