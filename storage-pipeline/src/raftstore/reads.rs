//! Reads that wait for a confirmation of leadership, and then for apply. Pure: it says what to ask raft and when a
//! job may have its snapshot.

use std::collections::VecDeque;

use crate::scheduler::task::Job;

/// The reads of one peer, in three stations: not yet asked, asked and unconfirmed, confirmed and not yet applied.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    unasked: Vec<Job>,
    asked: VecDeque<(u64, Vec<Job>)>,
    confirmed: VecDeque<Confirmed>,
    last_question: u64,
}

/// Reads whose leadership was confirmed.
#[derive(Debug)]
struct Confirmed {
    /// What apply has to reach first.
    index: u64,
    /// The term whose leadership was confirmed, which may have ended since.
    term: u64,
    jobs: Vec<Job>,
}

impl Reads {
    /// Adds a read.
    pub(crate) fn push(&mut self, job: Job) {
        self.unasked.push(job);
    }

    /// Whether raft has to be asked.
    pub(crate) fn has_unasked(&self) -> bool {
        !self.unasked.is_empty()
    }

    /// All reads that were not asked for go into one question. Returns its number, which raft's answer bears.
    pub(crate) fn ask(&mut self) -> u64 {
        self.last_question += 1;
        if !self.unasked.is_empty() {
            self.asked.push_back((self.last_question, std::mem::take(&mut self.unasked)));
        }
        self.last_question
    }

    /// The number of the last question, none being zero.
    #[cfg(test)]
    pub(crate) fn last_question(&self) -> u64 {
        self.last_question
    }

    /// Raft answered: leadership of `term` was confirmed after the question, and `index` was committed then. A later
    /// answer confirms every earlier question, whose own answer may have been lost.
    pub(crate) fn confirm(&mut self, question: u64, index: u64, term: u64) {
        let count = self.asked.partition_point(|(asked, _)| *asked <= question);
        self.confirmed.extend(self.asked.drain(..count).map(|(_, jobs)| Confirmed { index, term, jobs }));
    }

    /// Whether a read is confirmed and waits for apply, or will.
    pub(crate) fn await_apply(&self) -> bool {
        !self.confirmed.is_empty() || !self.asked.is_empty()
    }

    /// Takes out the confirmed reads for which apply has come far enough, each with the term of its confirmation.
    pub(crate) fn take_applied(&mut self, applied: u64) -> impl Iterator<Item = (Job, u64)> {
        let count = self.confirmed.partition_point(|confirmed| confirmed.index <= applied);
        let taken = self.confirmed.drain(..count);
        taken.flat_map(|Confirmed { term, jobs, .. }| jobs.into_iter().map(move |job| (job, term)))
    }

    /// Takes out every read, confirmed or not, for data that is about to be replaced.
    pub(crate) fn take_all(&mut self) -> Vec<Job> {
        let confirmed = std::mem::take(&mut self.confirmed).into_iter().flat_map(|confirmed| confirmed.jobs);
        confirmed.chain(self.take_unconfirmed()).collect()
    }

    /// Takes out every read whose leadership was not confirmed, for the loss of leadership. The confirmed ones stay.
    pub(crate) fn take_unconfirmed(&mut self) -> Vec<Job> {
        let asked = self.asked.drain(..).flat_map(|(_, jobs)| jobs);
        asked.chain(self.unasked.drain(..)).collect()
    }
}
