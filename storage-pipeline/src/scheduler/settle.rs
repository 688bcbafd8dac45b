//! The way out: whoever learns the fate of a command settles it here; the mode decides who tells the caller and who
//! releases the latches. Also the early answers: deadline, close, fault.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use crate::{
    completion_mode::Releaser,
    error::{Cause, Error, OutcomeKind},
    observe::Moment,
    planted::planted,
    scheduler::{
        Scheduler,
        single_thread::SchedulerMsg,
        task::{Abandoned, Reply, Settled, Task, Told, dispose},
    },
    threads,
    worker_pool::WorkerTask,
};

impl Scheduler {
    /// Settles one command.
    pub(crate) fn settle(&self, settled: Settled) {
        self.settle_all(vec![settled]);
    }

    /// Settles one command on a worker. Where the pool releases, this thread is the pool and needs no message.
    pub(crate) fn settle_on_worker(&self, settled: Settled) {
        if self.config.completion_mode.releaser() == Releaser::WorkerPool {
            self.finish(vec![settled]);
        } else {
            self.settle(settled);
        }
    }

    /// Settles commands, in the order in which they were settled. Never blocks and cannot be refused: the room of
    /// every release message was reserved at admission.
    pub(crate) fn settle_all(&self, mut batch: Vec<Settled>) {
        if self.config.completion_mode.settler_tells() {
            batch.iter_mut().for_each(|settled| self.tell_settled(settled));
        }
        batch.retain_mut(|settled| {
            let is_read = settled.task.is_read();
            if is_read {
                // A read holds no latch, so there is nobody to hand it to.
                self.tell_settled(settled);
                self.in_flight.leave(&settled.task);
                let cid = settled.task.context().cid;
                self.observer.note(Moment::Released { cid, applied_at: None });
            }
            !is_read
        });
        if batch.is_empty() {
            return;
        }
        match self.config.completion_mode.releaser() {
            Releaser::SettlingThread => self.finish(batch),
            Releaser::SchedulerThread => {
                if let Err(SchedulerMsg::Settled(batch)) = self.own.send(SchedulerMsg::Settled(batch)) {
                    self.finish(batch);
                }
            }
            Releaser::WorkerPool => {
                if let Err(WorkerTask::Finish(batch)) = self.workers.send(WorkerTask::Finish(batch)) {
                    self.finish(batch);
                }
            }
        }
    }

    /// What the releaser does: tells who was not told yet, then releases and starts the successors. Those are only sent
    /// for their snapshots; the ones that nobody takes, which are all in a store that closes, are finished in turn, in a
    /// loop.
    pub(crate) fn finish(&self, mut batch: Vec<Settled>) {
        let mut ready = Vec::new();
        while !batch.is_empty() {
            batch.iter_mut().for_each(|settled| self.tell_settled(settled));
            for settled in batch.drain(..) {
                let context = settled.task.context();
                if !(planted!(LostRelease) && context.cid % 16 == 3) {
                    self.latches.release(context.cid, &context.hashes, &mut ready);
                }
                if !(planted!(KeepsRoom) && context.cid % 16 == 3) {
                    self.in_flight.leave(&settled.task);
                }
                self.observer.note(Moment::Released { cid: context.cid, applied_at: settled.applied_at });
            }
            batch.extend(ready.drain(..).filter_map(|job| self.latched(job).err()));
        }
    }

    fn tell_settled(&self, settled: &mut Settled) {
        if let Some(reply) = settled.reply.take() {
            self.tell(&settled.task, reply, settled.applied_at);
        }
    }

    /// Runs a caller's callback, unless it ran before.
    pub(super) fn tell(&self, task: &Task, reply: Reply, applied_at: Option<Instant>) {
        let cid = task.context().cid;
        if task.is_unanswered() {
            self.observer.note(Moment::TellingCaller { cid, applied_at });
        }
        let outcome = reply.kind();
        self.told(task, || (task.tell(reply), outcome));
    }

    fn told(&self, task: &Task, tell: impl FnOnce() -> (Told, OutcomeKind)) {
        let cid = task.context().cid;
        let (told, outcome) = threads::in_callback(tell);
        match told {
            Told::Before => return,
            Told::Now => {}
            Told::Panicked => {
                // ORDERING: Relaxed; a statistic.
                self.callback_panics.fetch_add(1, Ordering::Relaxed);
                tracing::error!(cid, "a caller's callback panicked; the command counts as answered");
            }
        }
        self.observer.note(Moment::CallerTold { cid, outcome });
    }

    /// Answers every caller whose deadline has passed. Settles nothing.
    pub(crate) fn tell_overdue(&self, now: Instant) {
        for task in self.in_flight.overdue(now) {
            self.told(&task, || tell_early(&task, Error::DeadlineExceeded, Cause::DeadlineExceeded));
            if planted!(ReleaseAtDeadline) && !task.is_read() {
                self.settle(Settled { task, reply: None, applied_at: None });
            }
        }
    }

    /// Answers whoever still waits when the store ends. An observer that panics at one of them keeps nobody else
    /// waiting.
    fn tell_at_the_end(&self, tasks: Vec<Task>, indeterminate: &Cause) {
        for task in tasks {
            let tell = || tell_early(&task, self.refusal(), indeterminate.clone());
            let told = AssertUnwindSafe(|| self.told(&task, tell));
            if let Err(payload) = catch_unwind(told) {
                tracing::error!(cid = task.context().cid, "the observer panicked while the store ends");
                dispose(payload);
            }
        }
    }

    /// Takes nothing more and answers those whom raft does not have yet. The others are answered by what apply says,
    /// or by [`discard`](Self::discard).
    pub(crate) fn close(&self) {
        // ORDERING: Relaxed; who is admitted meanwhile is refused by the books, which are closed under their locks.
        self.closing.store(true, Ordering::Relaxed);
        let mut tasks = self.in_flight.close();
        tasks.retain(|task| task.context().phase.abandon() == Abandoned::NeverProposed);
        self.tell_at_the_end(tasks, &Cause::Closed);
    }

    /// Poisons the store: the first fault is kept, and every caller is answered at once. Nothing is released.
    pub(crate) fn poison(&self, fault: &str) {
        let fault: Arc<str> = fault.into();
        if self.fault.set(Arc::clone(&fault)).is_err() {
            return;
        }
        tracing::error!(%fault, "the store stops after a fault");
        // ORDERING: as in `close`.
        self.closing.store(true, Ordering::Relaxed);
        self.tell_at_the_end(self.in_flight.close(), &Cause::Poisoned(fault));
    }

    /// The first fault, once there was one.
    pub(crate) fn fault(&self) -> Option<&Arc<str>> {
        self.fault.get()
    }

    /// How many callbacks panicked.
    pub(crate) fn callback_panics(&self) -> u64 {
        // ORDERING: Relaxed; a count, from whenever it is.
        self.callback_panics.load(Ordering::Relaxed)
    }

    /// The end, after every thread was joined: whoever is left is answered, latches are discarded, nobody is woken.
    pub(crate) fn discard(&self) {
        self.tell_at_the_end(self.in_flight.discard(), &Cause::Closed);
        drop(self.latches.discard());
    }
}

/// Answers a caller before its command is settled, and says which kind of answer that was: what it is promised then holds for ever.
fn tell_early(task: &Task, not_executed: Error, indeterminate: Cause) -> (Told, OutcomeKind) {
    let told = task.tell_early(not_executed, indeterminate);
    let is_promised = task.context().phase.is_abandoned();
    (told, if is_promised { OutcomeKind::NotExecuted } else { OutcomeKind::Indeterminate })
}
