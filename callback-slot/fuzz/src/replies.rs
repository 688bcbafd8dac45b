//! Replies: their callbacks go into the hand, and from there into any form.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use callback_slot::{reply, Dropped, Reply, WaitError};

use crate::ledger::{self, Token};
use crate::model::{Answer, Task};
use crate::world::{Held, World};

/// So many replies at most, gone ones included: the model looks at all of them.
const MAX_REPLIES: usize = 64;

/// Each with its number in the model.
#[derive(Default)]
pub(crate) struct Replies(Vec<(Reply<Token>, usize)>);

struct Bell;

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        ledger::wake();
    }
}

impl World {
    pub(crate) fn reply_new(&mut self) {
        let number = self.model.answers.len();
        if number < MAX_REPLIES {
            let (callback, reply) = reply();
            self.model.answers.push(Answer::default());
            self.hand.push(Held { callback, task: Task::Reply(number) });
            self.replies.0.push((reply, number));
        }
    }

    pub(crate) fn reply(&mut self, at: usize, what: usize) {
        if self.replies.0.is_empty() {
            return;
        }
        let at = at % self.replies.0.len();
        let (reply, number) = self.replies.0.swap_remove(at);
        assert_eq!(reply.is_ready(), self.model.answers[number].is_rung);
        let left = match what % 4 {
            0 => match reply.try_into_value() {
                Ok(value) => self.answered(number, value),
                Err(reply) => self.unanswered(number, reply),
            },
            1 => self.poll(number, reply),
            2 => match reply.wait_timeout(Duration::ZERO) {
                Ok(value) => self.answered(number, Ok(value)),
                Err(WaitError::Dropped) => self.answered(number, Err(Dropped)),
                Err(WaitError::TimedOut(reply)) => {
                    // This thread took the waker's place.
                    self.model.answers[number].waker = false;
                    self.unanswered(number, reply)
                }
            },
            _ => {
                drop(reply);
                None
            }
        };
        match left {
            Some(reply) => self.replies.0.push((reply, number)),
            None => {
                let answer = &mut self.model.answers[number];
                *answer = Answer { is_rung: answer.is_rung, is_gone: true, ..Answer::default() };
            }
        }
    }

    /// Lets all replies go.
    pub(crate) fn close_replies(&mut self) {
        while !self.replies.0.is_empty() {
            self.reply(0, 3);
        }
    }

    fn poll(&mut self, number: usize, mut reply: Reply<Token>) -> Option<Reply<Token>> {
        let waker = Waker::from(Arc::new(Bell));
        match Pin::new(&mut reply).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => {
                self.model.answers[number].waker = true;
                self.unanswered(number, reply)
            }
            Poll::Ready(value) => {
                self.answered(number, value);
                self.model.answers[number].has_value = false;
                Some(reply)
            }
        }
    }

    fn answered(&mut self, number: usize, value: Result<Token, Dropped>) -> Option<Reply<Token>> {
        let answer = self.model.answers[number];
        assert!(answer.is_rung);
        assert_eq!(value.is_ok(), answer.has_value);
        None
    }

    fn unanswered(&mut self, number: usize, reply: Reply<Token>) -> Option<Reply<Token>> {
        assert!(!self.model.answers[number].is_rung);
        Some(reply)
    }
}
