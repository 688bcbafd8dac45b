//! What a client of the simulated cluster holds: it sends a command to a replica and waits for the answer, or sleeps. The
//! simulator polls clients as it gives rooms their turns.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    rc::Rc,
    task::Poll,
    time::Duration,
};

use crate::{
    command::Request,
    command::{Command, Response},
    error::Error,
    region::{FIRST_REGION, Region, Regions},
    scheduler::task::Reply,
    simulator::random::Random,
};

/// A command on its way to a replica.
pub(super) struct Asked {
    pub(super) replica: u64,
    pub(super) command: Command,
    pub(super) timeout: Duration,
}

/// What a client hears of a command.
#[derive(Debug)]
pub(super) enum Heard {
    /// The replica's answer.
    Told(Reply),
    /// The replica was not there: the command has no effect.
    NobodyThere,
    /// The replica died with the command: its fate is unknown.
    Lost,
}

/// A client's side of the cluster.
pub(super) struct Port {
    pub(super) replicas: u64,
    pub(super) asked: RefCell<Option<Asked>>,
    pub(super) heard: RefCell<Option<(Heard, u64)>>,
    pub(super) wakes_at: Cell<Option<Duration>>,
    pub(super) now: Rc<Cell<Duration>>,
    /// A count of everything that clients do and hear, which orders their histories.
    pub(super) beats: Rc<Cell<u64>>,
    pub(super) random: RefCell<Random>,
    /// How far the wall clock of this client is ahead of the cluster's time, in milliseconds.
    pub(super) wall_ahead_ms: Rc<Cell<i64>>,
    pub(super) regions: Rc<Regions>,
    /// The replica that it believes to lead, for each region.
    homes: Box<[Cell<u64>]>,
}

/// An answer, and when it came.
pub(super) struct Answer<T> {
    pub(super) outcome: Known<T>,
    pub(super) called: u64,
    pub(super) returned: u64,
}

/// What a client knows of its command.
#[derive(Debug)]
pub(super) enum Known<T> {
    Applied(T),
    NotExecuted(Option<Error>),
    Unknown,
}

impl Port {
    pub(super) fn new(
        replicas: u64,
        regions: &Rc<Regions>,
        seed: u64,
        now: &Rc<Cell<Duration>>,
        beats: &Rc<Cell<u64>>,
        wall_ahead_ms: &Rc<Cell<i64>>,
    ) -> Self {
        let mut random = Random::new(seed);
        let home = |_: &Region| Cell::new(1 + random.below(replicas as usize) as u64);
        let homes = regions.all().iter().map(home).collect();
        Self {
            replicas,
            asked: RefCell::default(),
            heard: RefCell::default(),
            wakes_at: Cell::default(),
            now: Rc::clone(now),
            beats: Rc::clone(beats),
            random: RefCell::new(random),
            wall_ahead_ms: Rc::clone(wall_ahead_ms),
            regions: Rc::clone(regions),
            homes,
        }
    }

    /// The same things, together with those of one region, for each of which a command is needed. The first one's are first.
    pub(super) fn by_region<T>(&self, things: Vec<T>, key: impl Fn(&T) -> Vec<u8>) -> Vec<Vec<T>> {
        let mut groups: Vec<(u64, Vec<T>)> = Vec::new();
        for thing in things {
            let region = self.regions.of_key(&key(&thing)).id;
            match groups.iter_mut().find(|(of, _)| *of == region) {
                Some((_, group)) => group.push(thing),
                None => groups.push((region, vec![thing])),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// Sleeps.
    pub(super) async fn sleep(&self, length: Duration) {
        let end = self.now.get() + length;
        poll_fn(|_| {
            if self.now.get() >= end {
                return Poll::Ready(());
            }
            self.wakes_at.set(Some(end));
            Poll::Pending
        })
        .await;
    }

    /// Sends a command once and waits for what becomes of it.
    pub(super) async fn ask<R: Request>(&self, request: R) -> Answer<R::Output> {
        let timeout = {
            let mut random = self.random.borrow_mut();
            match random.one_in(2) {
                true => random.between(Duration::from_millis(5), Duration::from_millis(60)),
                false => Duration::from_secs(2),
            }
        };
        let called = beat(&self.beats);
        let command = request.into();
        let region = self.regions.of_command(&command, None).expect("a client asks one region at a time");
        let home = &self.homes[(region - FIRST_REGION) as usize];
        // A client that has not heard of a new leader asks the old one, which is where a lease that lasts too long shows.
        if self.random.borrow_mut().one_in(4) {
            self.move_anywhere(home);
        }
        let asked = Asked { replica: home.get(), command, timeout };
        *self.asked.borrow_mut() = Some(asked);
        let (heard, returned) = poll_fn(|_| match self.heard.take() {
            Some(heard) => Poll::Ready(heard),
            None => Poll::Pending,
        })
        .await;
        let outcome = match heard {
            Heard::Told(Reply::Applied(response)) => Known::Applied(output::<R>(response)),
            Heard::Told(Reply::NotExecuted(error)) => Known::NotExecuted(Some(error)),
            Heard::NobodyThere => Known::NotExecuted(None),
            Heard::Told(Reply::Indeterminate(_)) | Heard::Lost => Known::Unknown,
        };
        self.look_elsewhere(home, &outcome);
        Answer { outcome, called, returned }
    }

    /// Sends a command that may be repeated until it is done, or for so many times.
    pub(super) async fn insist<R: Request + Clone>(&self, request: R, times: usize) -> Known<R::Output> {
        let mut unknown = false;
        for _ in 0..times {
            match self.ask(request.clone()).await.outcome {
                Known::NotExecuted(error) if error.as_ref().is_none_or(is_passing) => {
                    self.sleep(Duration::from_millis(10)).await;
                }
                Known::Unknown => unknown = true,
                other => return other,
            }
        }
        if unknown { Known::Unknown } else { Known::NotExecuted(None) }
    }

    fn look_elsewhere<T>(&self, home: &Cell<u64>, outcome: &Known<T>) {
        match outcome {
            Known::NotExecuted(Some(Error::NotLeader { leader: Some(leader) })) => home.set(*leader),
            Known::NotExecuted(error) if error.as_ref().is_none_or(is_passing) => self.move_anywhere(home),
            Known::Unknown => self.move_anywhere(home),
            _ => {}
        }
    }

    /// Believes any replica to lead each region.
    pub(super) fn look_anywhere(&self) {
        self.homes.iter().for_each(|home| self.move_anywhere(home));
    }

    fn move_anywhere(&self, home: &Cell<u64>) {
        home.set(1 + self.random.borrow_mut().below(self.replicas as usize) as u64);
    }
}

/// Counts one more.
pub(super) fn beat(beats: &Cell<u64>) -> u64 {
    beats.set(beats.get() + 1);
    beats.get()
}

fn output<R: Request>(response: Response) -> R::Output {
    R::output(response).expect("a command answers with the response that belongs to it")
}

/// Whether the same command may fare better elsewhere or later.
fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::NotLeader { .. }
            | Error::SchedTooBusy
            | Error::StaleCommand
            | Error::EpochPending { .. }
            | Error::DeadlineExceeded
            | Error::Closed
            | Error::Poisoned(_)
            | Error::Dropped
    )
}
