//! The books: every accepted command from admission until it is settled and released, and the bound on them.
//! Hands on the commands that must be answered early.

use std::{collections::HashMap, time::Instant};

use crate::{
    primitive::{AtomicUsize, Mutex, Ordering},
    scheduler::task::Task,
};

/// Number of shards, so that threads that admit and release seldom meet.
const SHARDS: usize = 16;

/// All commands in flight. Admission reserves their room in every later queue, which is why those know no "full".
#[derive(Debug)]
pub struct InFlight {
    shards: [Mutex<Shard>; SHARDS],
    commands: AtomicUsize,
    bytes: AtomicUsize,
    most_commands: usize,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Shard {
    tasks: HashMap<u64, Task>,
    closed: bool,
}

/// Room for one command, taken at admission. It is given back when the command leaves, or when this is dropped unused.
#[derive(Debug)]
#[must_use = "dropping the room gives it back"]
pub struct Room<'a> {
    books: &'a InFlight,
    bytes: usize,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.books.give_back(self.bytes);
    }
}

impl InFlight {
    /// Empty books with these bounds.
    #[must_use]
    pub fn new(most_commands: usize, most_bytes: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(Shard::default())),
            commands: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            most_commands,
            most_bytes,
        }
    }

    /// Takes room for a command of this many bytes, if there is any.
    pub fn reserve(&self, bytes: usize) -> Option<Room<'_>> {
        // ORDERING: Relaxed, here and in `give_back`; the counters bound amounts and publish nothing.
        let commands = self.commands.fetch_add(1, Ordering::Relaxed);
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // A command larger than the whole bound may run alone, or it could never run.
        let fits = before.saturating_add(bytes) <= self.most_bytes || before == 0;
        let room = Room { books: self, bytes };
        (commands < self.most_commands && fits).then_some(room)
    }

    /// Enters a command into the books. From here on it is accepted.
    ///
    /// # Errors
    /// The task, where the books are closed.
    pub fn enter(&self, room: Room<'_>, task: &Task) -> Result<(), Closed> {
        let mut shard = self.shard(task.context().cid).lock();
        if shard.closed {
            return Err(Closed);
        }
        shard.tasks.insert(task.context().cid, task.clone());
        drop(shard);
        std::mem::forget(room);
        Ok(())
    }

    /// Strikes a command off the books and gives its room back. Says whether it stood there.
    pub fn leave(&self, task: &Task) -> bool {
        let mut shard = self.shard(task.context().cid).lock();
        let left = shard.tasks.remove(&task.context().cid);
        drop(shard);
        if left.is_some() {
            self.give_back(task.context().bytes);
        }
        left.is_some()
    }

    /// Accepts nothing more. Gives out what is in the books, which stays in them until it is settled.
    pub fn close(&self) -> Vec<Task> {
        self.collect(|shard, tasks| {
            shard.closed = true;
            tasks.extend(shard.tasks.values().cloned());
        })
    }

    /// The unanswered commands whose deadline has passed.
    pub fn overdue(&self, now: Instant) -> Vec<Task> {
        let is_overdue = |task: &&Task| task.context().deadline <= now && task.is_unanswered();
        self.collect(|shard, tasks| tasks.extend(shard.tasks.values().filter(is_overdue).cloned()))
    }

    /// Strikes everything off, for the end of the store.
    pub fn discard(&self) -> Vec<Task> {
        let tasks = self.collect(|shard, tasks| {
            shard.closed = true;
            tasks.extend(shard.tasks.drain().map(|(_, task)| task));
        });
        tasks.iter().for_each(|task| self.give_back(task.context().bytes));
        tasks
    }

    /// How many commands and bytes are in flight.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.commands.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn give_back(&self, bytes: usize) {
        self.commands.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn shard(&self, cid: u64) -> &Mutex<Shard> {
        &self.shards[cid as usize % SHARDS]
    }

    /// Visits every shard. Tasks are only cloned under a lock, never answered or dropped there.
    fn collect(&self, mut visit: impl FnMut(&mut Shard, &mut Vec<Task>)) -> Vec<Task> {
        let mut tasks = Vec::new();
        for shard in &self.shards {
            visit(&mut shard.lock(), &mut tasks);
        }
        tasks
    }
}

/// The books are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;
