//! The books: a command is in them or refused, its room is given back once, and the bound holds for all who come at
//! once.

#[cfg(not(storage_pipeline_loom))]
compile_error!("the models of the pipeline need --cfg storage_pipeline_loom in RUSTFLAGS");

use std::sync::Arc;
use std::time::Instant;

use loom::thread;
use loom_tests::model;
use loom_tests::pipeline::{BYTES, Caller, model_of_tasks, tell_closed, tell_overdue};
use storage_pipeline::scheduler::in_flight::InFlight;
use storage_pipeline::scheduler::task::Task;

fn books(most_commands: usize, most_bytes: usize) -> Arc<InFlight> {
    Arc::new(InFlight::new(most_commands, most_bytes))
}

/// What admission does.
fn admit(books: &InFlight, task: &Task) -> bool {
    books.reserve(BYTES).is_some_and(|room| books.enter(room, task).is_ok())
}

#[test]
fn enter_races_close() {
    model_of_tasks(|| {
        let (books, caller) = (books(1, BYTES), Caller::new());
        let task = caller.task(1, &[7]);
        let other = Arc::clone(&books);
        let admitted = thread::spawn(move || {
            let admitted = admit(&other, &task);
            if !admitted {
                let _ = tell_closed(&task);
            }
            admitted.then_some(task)
        });
        let handed_out = books.close();
        handed_out.iter().for_each(|task| _ = tell_closed(task));
        let admitted = admitted.join().unwrap();
        assert_eq!(handed_out.len(), usize::from(admitted.is_some()), "handed out or refused, never neither");
        assert!(caller.told_once().is_not_executed());
        if let Some(task) = admitted {
            assert_eq!(books.counts(), (1, BYTES), "it stays in the books until it is settled");
            assert!(books.leave(&task));
        }
        assert_eq!(books.counts(), (0, 0));
    });
}

/// A command that is settled while its deadline passes: the sweep answers it, or finds it answered or gone.
#[test]
fn leave_races_overdue() {
    model_of_tasks(|| {
        let (books, caller) = (books(1, BYTES), Caller::new());
        let task = caller.task(1, &[7]);
        assert!(admit(&books, &task));
        let other = Arc::clone(&books);
        let sweep = thread::spawn(move || {
            let overdue = other.overdue(Instant::now());
            overdue.iter().for_each(|task| _ = tell_overdue(task));
            overdue.len()
        });
        if caller.propose(&task) {
            let _ = caller.apply(&task);
        }
        assert!(books.leave(&task));
        drop(task);
        if sweep.join().unwrap() == 0 {
            assert!(caller.told_once().is_applied());
        }
        let _ = caller.told_once();
        assert_eq!(books.counts(), (0, 0));
    });
}

/// Two who end one command: its room is given back once.
#[test]
fn leave_races_leave() {
    model_of_tasks(|| {
        let (books, caller) = (books(2, 2 * BYTES), Caller::new());
        let task = caller.task(1, &[7]);
        assert!(admit(&books, &task));
        let (other, there) = (Arc::clone(&books), task.clone());
        let there = thread::spawn(move || other.leave(&there));
        let here = books.leave(&task);
        assert_ne!(here, there.join().unwrap(), "it stood there once");
        assert_eq!(books.counts(), (0, 0));
    });
}

#[test]
fn leave_races_discard() {
    model_of_tasks(|| {
        let (books, caller) = (books(2, 2 * BYTES), Caller::new());
        let task = caller.task(1, &[7]);
        assert!(admit(&books, &task));
        let other = Arc::clone(&books);
        let discard = thread::spawn(move || {
            let left = other.discard();
            left.iter().for_each(|task| _ = tell_closed(task));
            left.len()
        });
        let left = books.leave(&task);
        drop(task);
        assert_eq!(usize::from(left) + discard.join().unwrap(), 1, "it stood there once");
        let _ = caller.told_once();
        assert_eq!(books.counts(), (0, 0));
    });
}

/// As many threads as there are sizes each take room for a command. All rooms that were taken are held until the end,
/// and given back then.
fn reserve(books: fn() -> Arc<InFlight>, sizes: &'static [usize], check: fn(&[bool])) {
    model(move || {
        let books = books();
        let held = books.counts();
        let others: Vec<_> = sizes[1..]
            .iter()
            .map(|&bytes| {
                let books = Arc::clone(&books);
                thread::spawn(move || keep(&books, bytes))
            })
            .collect();
        let here = keep(&books, sizes[0]);
        let taken: Vec<_> =
            std::iter::once(here).chain(others.into_iter().map(|o| o.join().unwrap())).collect();
        check(&taken);
        let bytes = sizes.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(bytes, _)| bytes);
        assert_eq!(books.counts(), (held.0 + bytes.clone().count(), held.1 + bytes.sum::<usize>()));
    });
}

/// Takes room and keeps it for ever, which says that it was there.
fn keep(books: &InFlight, bytes: usize) -> bool {
    books.reserve(bytes).map(std::mem::forget).is_some()
}

fn count(taken: &[bool]) -> usize {
    taken.iter().filter(|taken| **taken).count()
}

#[test]
fn two_reserve_the_last_command() {
    reserve(|| books(1, 1000), &[BYTES, BYTES], |taken| assert_eq!(count(taken), 1));
}

#[test]
fn three_reserve_the_last_two_commands() {
    reserve(|| books(2, 1000), &[BYTES, BYTES, BYTES], |taken| assert_eq!(count(taken), 2));
}

#[test]
fn two_reserve_the_last_bytes() {
    reserve(|| books(9, BYTES), &[BYTES, BYTES], |taken| assert_eq!(count(taken), 1));
}

/// Both bounds at once: the two must not take one half of the room each and be refused for the other half.
#[test]
fn two_reserve_the_last_room_of_both_kinds() {
    reserve(|| books(1, BYTES), &[BYTES, BYTES], |taken| assert_eq!(count(taken), 1));
}

/// What does not fit must not stand in the way of what does, not even for a moment.
#[test]
fn a_refused_command_races_one_that_fits() {
    let books = || {
        let books = books(9, 100);
        assert!(keep(&books, 50));
        books
    };
    reserve(books, &[30, 80], |taken| assert_eq!(taken, [true, false]));
}

/// A command larger than the whole bound runs alone, or not now.
#[test]
fn an_outsized_command_races_a_small_one() {
    reserve(|| books(9, 100), &[200, BYTES], |taken| assert_eq!(count(taken), 1));
}

/// Room that was taken and not used comes back, and whoever asks meanwhile gets it or does not.
#[test]
fn giving_back_races_reserve() {
    model(|| {
        let books = books(1, BYTES);
        let other = Arc::clone(&books);
        let there = thread::spawn(move || drop(other.reserve(BYTES)));
        let room = books.reserve(BYTES);
        there.join().unwrap();
        assert!(room.is_some() || books.reserve(BYTES).is_some(), "nobody has it any more");
        drop(room);
        assert_eq!(books.counts(), (0, 0));
    });
}
