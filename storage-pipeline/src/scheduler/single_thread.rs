//! The scheduler thread of the modes that have one: commands come in, releases come back, and only here are latches
//! touched. It ends when its mailbox is closed and empty.

use std::collections::VecDeque;

use crate::{
    mailbox::Received,
    scheduler::{
        Scheduler,
        task::{Job, Settled},
    },
};

/// What the scheduler thread is sent.
#[derive(Debug)]
pub(crate) enum SchedulerMsg {
    /// A write that was admitted.
    Command(Job),
    /// Writes that are settled.
    Settled(Vec<Settled>),
}

/// Runs until the mailbox is closed and empty.
pub(crate) fn run(scheduler: &Scheduler) {
    let mut messages = VecDeque::new();
    while scheduler.own.receive_all(&mut messages, None) != Received::Closed {
        messages.drain(..).for_each(|message| turn(scheduler, message));
    }
}

/// Does what the scheduler thread is sent.
pub(crate) fn turn(scheduler: &Scheduler, message: SchedulerMsg) {
    match message {
        SchedulerMsg::Command(job) => scheduler.start(job),
        SchedulerMsg::Settled(batch) => scheduler.finish(batch),
    }
}
