//! The books: every accepted command from admission until it is settled and released, and the bound on them.
//! Hands on the commands that must be answered early.

use std::{collections::BTreeMap, time::Instant};

use crate::{
    primitive::{AtomicU64, Mutex, Ordering},
    scheduler::task::Task,
};

/// Number of shards, so that threads that admit and release seldom meet.
const SHARDS: usize = 16;

/// One command in the word of amounts. What is below counts bytes, up to half a terabyte.
const COMMAND: u64 = 1 << 39;

/// All commands in flight. Admission reserves their room in every later queue, which is why those know no "full".
#[derive(Debug)]
pub struct InFlight {
    shards: [Mutex<Shard>; SHARDS],
    /// Commands and bytes in one word, so that whoever asks is measured against both bounds in one step. In two steps
    /// two could take one half of the last room each, and both be refused for the other half.
    amounts: AtomicU64,
    most_commands: u64,
    most_bytes: u64,
}

#[derive(Debug, Default)]
struct Shard {
    /// In the order of their numbers, which is that of their admission.
    tasks: BTreeMap<u64, Task>,
    closed: bool,
}

/// Room for one command, taken at admission. It is given back when the command leaves, or when this is dropped unused.
#[derive(Debug)]
#[must_use = "dropping the room gives it back"]
pub struct Room<'a> {
    books: &'a InFlight,
    amount: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.books.give_back(self.amount);
    }
}

impl InFlight {
    /// Empty books with these bounds, or with the greatest that can be counted: 33 million commands, half a terabyte.
    #[must_use]
    pub fn new(most_commands: usize, most_bytes: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(Shard::default())),
            amounts: AtomicU64::new(0),
            most_commands: (most_commands as u64).min(u64::MAX / COMMAND),
            most_bytes: (most_bytes as u64).min(COMMAND - 1),
        }
    }

    /// Takes room for a command of this many bytes, if there is any. Whoever is refused was never in anybody's way.
    pub fn reserve(&self, bytes: usize) -> Option<Room<'_>> {
        let bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes < COMMAND)?;
        let amount = COMMAND + bytes;
        let with_it = |amounts: u64| {
            let (commands, before) = (amounts / COMMAND, amounts % COMMAND);
            // A command larger than the whole bound may run alone, or it could never run.
            let fits = before + bytes <= self.most_bytes || before == 0;
            (commands < self.most_commands && fits).then(|| amounts + amount)
        };
        // ORDERING: Relaxed, here and in `give_back`; the word bounds amounts and publishes nothing.
        self.amounts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_it).ok()?;
        Some(Room { books: self, amount })
    }

    /// Enters a command into the books. From here on it is accepted.
    ///
    /// # Errors
    /// [`Closed`], which gives the room back.
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
            self.give_back(COMMAND + task.context().bytes as u64);
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
            tasks.extend(std::mem::take(&mut shard.tasks).into_values());
        });
        tasks.iter().for_each(|task| self.give_back(COMMAND + task.context().bytes as u64));
        tasks
    }

    /// How many commands and bytes are in flight.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let amounts = self.amounts.load(Ordering::Relaxed);
        ((amounts / COMMAND) as usize, (amounts % COMMAND) as usize)
    }

    fn give_back(&self, amount: u64) {
        self.amounts.fetch_sub(amount, Ordering::Relaxed);
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
