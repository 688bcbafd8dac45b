//! The scheduler thread of the modes that have one: commands come in, releases come back, and only here are latches
//! touched. It ends when its mailbox is closed and empty.

use std::{collections::VecDeque, time::Instant};

use crate::{
    mailbox::Received,
    patience::Patience,
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
    let mut patience = Patience::new(scheduler.config.stay_awake, Instant::now());
    loop {
        patience.stay_awake(&scheduler.own);
        if scheduler.own.receive_all(&mut messages, None) == Received::Closed {
            return;
        }
        let commands = messages.iter().filter(|message| matches!(message, SchedulerMsg::Command(_)));
        patience.received(commands.count(), scheduler.in_flight.counts().0, Instant::now());
        messages.drain(..).for_each(|message| turn(scheduler, message));
        patience.done(Instant::now());
    }
}

/// Does what the scheduler thread is sent.
pub(crate) fn turn(scheduler: &Scheduler, message: SchedulerMsg) {
    match message {
        SchedulerMsg::Command(job) => scheduler.start(job),
        SchedulerMsg::Settled(batch) => scheduler.finish(batch),
    }
}
