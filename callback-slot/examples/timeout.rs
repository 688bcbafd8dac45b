//! A write that races its own timeout: the caller hears exactly one of the two.

use callback_slot::SharedSlot;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn main() {
    for (write_ms, limit_ms) in [(5, 200), (200, 5)] {
        let (told, caller) = mpsc::channel();
        let write = SharedSlot::new(move |outcome: Result<u64, &str>| told.send(outcome).unwrap());

        let timer = write.clone();
        let timer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(limit_ms));
            timer.complete(Err("timed out")).is_ok()
        });
        let worker = thread::spawn(move || {
            thread::sleep(Duration::from_millis(write_ms));
            write.complete(Ok(7)).is_ok()
        });

        println!("a write of {write_ms} ms with {limit_ms} ms to do it: {:?}", caller.recv().unwrap());
        assert!(timer.join().unwrap() != worker.join().unwrap(), "exactly one told the caller");
        assert!(caller.recv().is_err(), "and nobody tells it again");
    }
}
