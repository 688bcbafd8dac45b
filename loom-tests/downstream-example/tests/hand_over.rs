//! The project's own models: its board, its lock and the slot together, in every interleaving.

#![cfg(callback_slot_loom)]

use downstream_example::{Board, Outcome};
use loom::sync::Arc;
use loom::thread;
use std::sync::Mutex;

type Answers = std::sync::Arc<Mutex<Vec<Outcome>>>;

fn answer_into(answers: &Answers) -> impl FnOnce(Outcome) + Send + 'static {
    let answers = Answers::clone(answers);
    move |outcome| answers.lock().unwrap().push(outcome)
}

#[test]
fn worker_applies_while_the_board_closes() {
    loom::model(|| {
        let answers = Answers::default();
        let board = Arc::new(Board::default());
        let write = board.submit(answer_into(&answers));
        let worker = thread::spawn(move || write.apply(7));
        let closed = board.close();
        let applied = worker.join().unwrap();
        assert_eq!((closed == 1, applied), (!applied, applied), "one of them told the caller");
        let expected = if applied { Outcome::Applied(7) } else { Outcome::Closed };
        assert_eq!(*answers.lock().unwrap(), [expected]);
    });
}

#[test]
fn worker_goes_away_while_the_board_sweeps() {
    loom::model(|| {
        let answers = Answers::default();
        let board = Arc::new(Board::default());
        let write = board.submit(answer_into(&answers));
        let worker = thread::spawn(move || drop(write));
        assert_eq!(board.sweep(), 0, "nobody has answered yet");
        worker.join().unwrap();
        drop(board);
        assert_eq!(*answers.lock().unwrap(), [Outcome::Lost]);
    });
}
