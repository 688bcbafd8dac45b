//! Every kind of request with every way in which an attempt can end.

use super::*;
use crate::error::{InvalidCommand, LockInfo, WriteConflict};

const KINDS: [Kind; 4] = [Kind::Read, Kind::Repeatable, Kind::Commit, Kind::Once];

fn text() -> Arc<str> {
    "why".into()
}

fn lost() -> Attempt {
    Attempt::Lost(Cause::ConnectionLost(text()))
}

fn refused(error: Error) -> Attempt {
    Attempt::Answered(Outcome::NotExecuted(error))
}

fn not_leader() -> Error {
    Error::NotLeader { leader: Some(2) }
}

/// Errors after which nothing is asked again.
fn final_errors() -> Vec<Error> {
    let lock =
        || LockInfo { key: vec![1], primary: vec![1], start_ts: 1, ttl_ms: 1, txn_size: 1, min_commit_ts: 1 };
    let conflict = || WriteConflict {
        key: vec![1],
        primary: vec![1],
        start_ts: 1,
        conflict_start_ts: 1,
        conflict_commit_ts: 2,
    };
    vec![
        Error::InvalidCommand(InvalidCommand::EmptyKey { field: "key".into() }),
        Error::DeadlineExceeded,
        Error::KeyNotInRegion { key: vec![1], region: 1, start_key: vec![], end_key: vec![] },
        Error::KeyIsLocked(Box::new(lock())),
        Error::WriteConflict(Box::new(conflict())),
        Error::TxnNotFound { start_ts: 1, key: vec![1] },
        Error::AlreadyExist { key: vec![1] },
        Error::PrimaryMismatch { primary: vec![1] },
        Error::GcTooEarly { read_ts: 1, safe_point: 2 },
        Error::WouldBlockPipeline,
        Error::Corrupt(text()),
        Error::Engine(text()),
        Error::Refused(text()),
    ]
}

/// Errors that settle what became of all attempts of a commit.
fn settling_errors() -> Vec<Error> {
    vec![
        Error::TxnLockNotFound { start_ts: 1, key: vec![1] },
        Error::CommitTsExpired { start_ts: 1, commit_ts: 2, min_commit_ts: 3 },
        Error::Committed { start_ts: 1, commit_ts: 3 },
    ]
}

/// Errors after which somebody is asked again.
fn passing_errors() -> Vec<(Error, Whom)> {
    vec![
        (Error::NotLeader { leader: None }, Whom::Other),
        (Error::Closed, Whom::Other),
        (Error::Poisoned(text()), Whom::Other),
        (Error::SchedTooBusy, Whom::Same),
        (Error::StaleCommand, Whom::Same),
        (Error::EpochPending { region: 1 }, Whom::Same),
        (Error::Dropped, Whom::Same),
    ]
}

#[test]
fn what_was_applied_is_told_at_once_even_late_and_in_doubt() {
    let applied = || Attempt::Answered(Outcome::Applied(Response::TtlMs(7)));
    for kind in KINDS {
        let mut course = Course::new(kind);
        assert_eq!(course.next(applied(), false, true), Step::Done(Outcome::Applied(Response::TtlMs(7))));
        if kind != Kind::Once {
            course.next(lost(), false, false);
            assert_eq!(course.next(applied(), false, true), Step::Done(Outcome::Applied(Response::TtlMs(7))));
        }
    }
}

#[test]
fn what_never_was_executed_is_asked_again_where_that_can_help_and_told_where_it_cannot() {
    for kind in KINDS {
        for error in final_errors().into_iter().chain(settling_errors()) {
            let step = Course::new(kind).next(refused(error.clone()), false, false);
            assert_eq!(step, Step::Done(Outcome::NotExecuted(error)), "{kind:?}");
        }
        for (error, whom) in passing_errors() {
            let step = Course::new(kind).next(refused(error.clone()), false, false);
            assert_eq!(step, Step::Again { whom, pauses: true }, "{kind:?} {error:?}");
            let step = Course::new(kind).next(refused(error.clone()), false, true);
            assert_eq!(step, Step::Done(Outcome::NotExecuted(error)), "{kind:?}");
        }
        let step = Course::new(kind).next(Attempt::NotSent(text()), false, false);
        assert_eq!(step, Step::Again { whom: Whom::Other, pauses: true });
        let step = Course::new(kind).next(Attempt::NotSent(text()), false, true);
        assert_eq!(step, Step::Done(Outcome::NotExecuted(Error::Unreachable(text()))));
    }
}

#[test]
fn a_write_that_is_not_to_be_repeated_never_is_once_it_may_have_taken_effect() {
    for cause in
        [Cause::LeadershipLost, Cause::DeadlineExceeded, Cause::ConnectionLost(text()), Cause::Closed]
    {
        for attempt in
            [Attempt::Lost(cause.clone()), Attempt::Answered(Outcome::Indeterminate(cause.clone()))]
        {
            for is_over in [false, true] {
                let step = Course::new(Kind::Once).next(attempt.clone(), false, is_over);
                assert_eq!(step, Step::Done(Outcome::Indeterminate(cause.clone())));
            }
            for kind in [Kind::Read, Kind::Repeatable, Kind::Commit] {
                let step = Course::new(kind).next(attempt.clone(), false, false);
                assert_eq!(step, Step::Again { whom: Whom::Other, pauses: true }, "{kind:?}");
            }
        }
    }
}

#[test]
fn after_doubt_not_executed_is_told_only_where_it_speaks_of_all_attempts() {
    let every: Vec<_> =
        final_errors().into_iter().chain(passing_errors().into_iter().map(|(error, _)| error)).collect();
    for kind in [Kind::Repeatable, Kind::Commit] {
        for error in &every {
            let mut course = Course::new(kind);
            course.next(lost(), false, false);
            let step = course.next(refused(error.clone()), false, true);
            let indeterminate = Outcome::Indeterminate(Cause::ConnectionLost(text()));
            assert_eq!(step, Step::Done(indeterminate), "{kind:?} {error:?}");
        }
        for error in settling_errors() {
            let mut course = Course::new(kind);
            course.next(lost(), false, false);
            let told = course.next(refused(error.clone()), false, false);
            let is_settled = kind == Kind::Commit;
            assert_eq!(told == Step::Done(Outcome::NotExecuted(error)), is_settled, "{kind:?} {told:?}");
        }
    }
    for error in every {
        let mut course = Course::new(Kind::Read);
        course.next(lost(), false, false);
        let step = course.next(refused(error.clone()), false, true);
        assert_eq!(step, Step::Done(Outcome::NotExecuted(error)), "a read leaves no doubt");
    }
    let mut course = Course::new(Kind::Repeatable);
    course.next(lost(), false, false);
    let step = course.next(Attempt::Lost(Cause::DeadlineExceeded), false, true);
    assert_eq!(
        step,
        Step::Done(Outcome::Indeterminate(Cause::ConnectionLost(text()))),
        "the first doubt is told"
    );
}

#[test]
fn a_leader_that_is_named_is_followed_at_once_and_the_next_one_after_a_pause() {
    let mut course = Course::new(Kind::Once);
    let mut next = |is_over| course.next(refused(not_leader()), true, is_over);
    assert_eq!(next(false), Step::Again { whom: Whom::Leader, pauses: false });
    assert_eq!(next(false), Step::Again { whom: Whom::Leader, pauses: true });
    assert_eq!(next(false), Step::Again { whom: Whom::Leader, pauses: false });
    assert_eq!(next(true), Step::Done(Outcome::NotExecuted(not_leader())));
}

#[test]
fn every_command_that_writes_without_a_transaction_is_sent_once_only() {
    use crate::command::{
        AllocateTimestamps, Commit, Gc, RawCompareAndSwap, RawDelete, RawGet, RawPut, Rollback,
    };
    let key = || vec![1];
    for (command, kind) in [
        (Command::from(RawPut { key: key(), value: key() }), Kind::Once),
        (RawDelete { key: key() }.into(), Kind::Once),
        (RawCompareAndSwap { key: key(), previous: None, value: key() }.into(), Kind::Once),
        (RawGet { key: key() }.into(), Kind::Read),
        (AllocateTimestamps { at_least: 1, window: 1 }.into(), Kind::Repeatable),
        (Commit { keys: vec![key()], start_ts: 1, commit_ts: 2 }.into(), Kind::Commit),
        (Rollback { keys: vec![key()], start_ts: 1 }.into(), Kind::Repeatable),
        (Gc { safe_point: 1, keys: vec![] }.into(), Kind::Repeatable),
    ] {
        assert_eq!(Kind::of(&command), kind, "{command:?}");
        assert!(!command.is_read() || kind == Kind::Read);
    }
}
