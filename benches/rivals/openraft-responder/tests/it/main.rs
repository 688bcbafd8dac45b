//! One real node of openraft, and what becomes of the callbacks of its writes.

mod node;

use std::{
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use openraft::{
    alias::ResponderOf,
    errors::ClientWriteError,
    raft::{ClientWriteResult, responder::Responder},
};
use openraft_responder::{Answer, CallbackResponder, Dropped};

use crate::node::{Config, Node};

type Written = ClientWriteResult<Config>;

/// A responder, and where its callback reports to. A second report, or none, is an error there.
fn reporting() -> (ResponderOf<Config, Written>, Receiver<Answer<Written>>) {
    let (report, reported) = channel();
    (CallbackResponder::new(move |answer| report.send(answer).expect("the test listens")), reported)
}

/// The one answer: it has come, and after the callback is gone no other can.
fn only_answer(reported: &Receiver<Answer<Written>>) -> Answer<Written> {
    let answer = reported.recv_timeout(Duration::from_secs(10)).expect("every write is answered");
    assert!(reported.recv_timeout(Duration::from_secs(10)).is_err(), "and only once");
    answer
}

#[test]
fn a_write_is_answered_once_with_what_the_state_machine_said() {
    let node = Node::leader();
    for (value, sum) in [(5, 5), (7, 12), (30, 42)] {
        let (responder, reported) = reporting();
        node.write(value, responder).unwrap();
        let written = only_answer(&reported).expect("nobody drops it").expect("the node leads");
        assert_eq!(written.data, sum);
    }
}

#[test]
fn a_refused_write_is_answered_once_with_the_refusal() {
    let node = Node::without_cluster();
    let (responder, reported) = reporting();
    node.write(5, responder).unwrap();
    let answer = only_answer(&reported).expect("nobody drops it");
    assert!(matches!(answer, Err(ClientWriteError::ForwardToLeader(_))), "{answer:?}");
}

#[test]
fn a_write_that_a_stopped_node_drops_is_answered_by_the_fallback() {
    let node = Node::leader();
    node.stop();
    let (responder, reported) = reporting();
    assert!(node.write(5, responder).is_err(), "the node is gone");
    assert_eq!(only_answer(&reported).unwrap_err(), Dropped);
}

#[test]
fn writes_on_the_way_into_a_stopping_node_are_answered_one_way_or_the_other() {
    let node = Node::leader();
    let waiting: Vec<_> = (0..100)
        .map(|value| {
            let (responder, reported) = reporting();
            // The last ones may find the node gone; their responders are dropped then.
            let _ = node.write(value, responder);
            if value == 50 {
                node.stop_soon();
            }
            reported
        })
        .collect();
    node.stop();
    // Which got through depends on when the node stopped; that each has one answer does not.
    for answer in waiting.iter().map(only_answer) {
        assert!(matches!(answer, Ok(Ok(_)) | Err(Dropped)), "{answer:?}");
    }
}

#[test]
fn a_timer_that_answers_first_wins_over_raft() {
    let node = Node::leader();
    let (responder, reported) = reporting();
    let timer = responder.handle();
    assert!(timer.is_waiting());
    timer.answer(Err(Dropped)).expect("raft does not know of the write yet");
    assert!(!timer.is_waiting());
    node.write(5, responder).unwrap();
    // The write itself takes effect, as it would after any timeout.
    let (later, of_later) = reporting();
    node.write(7, later).unwrap();
    assert_eq!(only_answer(&of_later).unwrap().unwrap().data, 12);
    assert_eq!(only_answer(&reported).unwrap_err(), Dropped);
}

#[test]
fn a_timer_that_is_late_gets_its_answer_back() {
    let (responder, reported) = reporting();
    let timer = responder.handle();
    let refusal = Err(ClientWriteError::ForwardToLeader(openraft::errors::ForwardToLeader::empty()));
    <CallbackResponder<Written> as Responder<Config, Written>>::on_complete(responder, refusal);
    assert!(matches!(timer.answer(Err(Dropped)), Err(Err(Dropped))));
    assert!(only_answer(&reported).is_ok());
}

#[test]
fn a_responder_that_is_dropped_uncalled_answers_when_the_last_handle_goes() {
    let (responder, reported) = reporting();
    let timer = responder.handle();
    drop(responder);
    assert!(timer.is_waiting(), "the timer may still answer");
    drop(timer);
    assert_eq!(only_answer(&reported).unwrap_err(), Dropped);
}
