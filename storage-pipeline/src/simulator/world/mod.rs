//! The simulated cluster: replicas, network, clients and what goes wrong, one action at a time, chosen by the seed. Hands
//! on a report, or the first violation of an invariant.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    rc::Rc,
    time::{Duration, Instant},
};

use crate::{
    clock,
    completion_mode::CompletionMode,
    config::{Config, ReadPolicy},
    error::Outcome,
    members::Members,
    region::{FIRST_REGION, Regions},
    simulator::{
        Options, Report, bank,
        invariants::{
            self, Invariant, Log, Operation, Who, linearizability::History, snapshot_isolation::Ledger,
        },
        network::Network,
        node::Node,
        port::Port,
        random::Random,
        raw_client,
        trace::Trace,
        weather::Fault,
    },
};

mod actions;
mod farewell;
mod lives;
mod watch;

/// How long things may go wrong.
const STORM: Duration = Duration::from_millis(2500);
/// Where a store is split: between accounts that one transfer is of, between raw keys, between both, or nowhere.
const SPLITS: [&[&str]; 6] =
    [&[], &[], &["account-2"], &["raw-1"], &["account-1", "raw-1"], &["account-2", "account-3"]];
/// How long it may take afterwards until all is at rest.
const CALM: Duration = Duration::from_secs(60);

/// A violation: which invariant, and how.
pub(super) struct Violation {
    pub(super) invariant: &'static str,
    pub(super) what: String,
}

fn violation(invariant: &'static str, what: impl Into<String>) -> Violation {
    Violation { invariant, what: what.into() }
}

/// A client and what it is doing.
struct Client {
    port: Rc<Port>,
    doing: Pin<Box<dyn Future<Output = ()>>>,
    is_done: bool,
    /// The command that it waits for.
    waits_for: Option<u64>,
}

pub(super) struct World {
    random: Random,
    now: Rc<Cell<Duration>>,
    beats: Rc<Cell<u64>>,
    wall_ahead_ms: Rc<Cell<i64>>,
    nodes: Vec<Node>,
    regions: Rc<Regions>,
    /// The logs of each replica, one for each region, as they were last seen.
    logs: Vec<Vec<Log>>,
    network: Network,
    clients: Vec<Client>,
    operations: BTreeMap<u64, Operation>,
    /// Which client each command is of, and which life of which replica has it.
    owners: BTreeMap<u64, (usize, Who)>,
    /// Commands by their numbers within the lives of the replicas.
    cids: BTreeMap<(Who, u64), u64>,
    /// For each region.
    of_commands: Vec<Vec<Box<dyn Invariant>>>,
    of_raft: Vec<Vec<Box<dyn Invariant>>>,
    history: Rc<RefCell<History>>,
    ledger: Rc<RefCell<Ledger>>,
    /// What was told last of a change of each region's members.
    members_told: Vec<Option<Outcome<Members>>>,
    /// The region whose leader and members the next faults are about.
    stormy: u64,
    next_fault: Option<(Duration, Fault)>,
    /// What goes wrong after that, each with the time until it since the one before.
    coming: VecDeque<(Duration, Fault)>,
    /// Nothing goes wrong any more.
    is_calm: bool,
    report: Report,
    trace: Trace,
}

impl World {
    pub(super) fn new(options: &Options) -> Self {
        let mut random = Random::new(options.seed);
        let replicas = *random.pick(&[3, 3, 3, 3, 3, 5, 1]);
        let mode = *random.pick(&CompletionMode::ALL);
        let start = Instant::now();
        let mut group = Config::new("replica");
        group.voters = (1..=replicas).collect();
        group.completion_mode = mode;
        group.raftstore_mailbox = *random.pick(&[2, 8, 1024]);
        group.read_policy = if random.one_in(4) { ReadPolicy::ReadIndex } else { ReadPolicy::Lease };
        group.tick = Duration::from_millis(5);
        group.election_ticks = 8;
        group.heartbeat_ticks = 2;
        group.stay_awake = Duration::ZERO;
        group.apply_threads = 1;
        group.split_keys = random.pick(&SPLITS).iter().map(|key| key.as_bytes().to_vec()).collect();
        let regions = Rc::new(Regions::split_at(&group.split_keys));
        let count = regions.all().len();
        let nodes: Vec<_> = (1..=replicas).map(|id| Node::new(id, &group, start, &mut random)).collect();
        let mut world = Self {
            logs: vec![vec![Log::default(); count]; nodes.len()],
            nodes,
            now: Rc::default(),
            beats: Rc::default(),
            wall_ahead_ms: Rc::default(),
            network: Network::default(),
            clients: Vec::new(),
            operations: BTreeMap::new(),
            owners: BTreeMap::new(),
            cids: BTreeMap::new(),
            of_commands: (0..count).map(|_| invariants::of_commands()).collect(),
            of_raft: (0..count).map(|_| invariants::of_raft()).collect(),
            members_told: vec![None; count],
            stormy: FIRST_REGION,
            history: Rc::default(),
            ledger: Rc::default(),
            next_fault: None,
            coming: VecDeque::new(),
            is_calm: false,
            report: Report { seed: options.seed, replicas, regions: count, mode, ..Report::default() },
            trace: Trace::new(options.trace),
            regions,
            random,
        };
        for _ in 0..6 {
            let history = Rc::clone(&world.history);
            world.add_client(|port| Box::pin(raw_client::run(port, history, 120)));
        }
        for _ in 0..3 {
            let ledger = Rc::clone(&world.ledger);
            world.add_client(|port| Box::pin(bank::run(port, ledger, 40)));
        }
        world
    }

    fn add_client(&mut self, doing: impl FnOnce(Rc<Port>) -> Pin<Box<dyn Future<Output = ()>>>) {
        let (replicas, seed, wall) = (self.nodes.len() as u64, self.random.seed(), &self.wall_ahead_ms);
        let port = Rc::new(Port::new(replicas, &self.regions, seed, &self.now, &self.beats, wall));
        let doing = doing(Rc::clone(&port));
        self.clients.push(Client { port, doing, is_done: false, waits_for: None });
    }

    /// A storm while the clients work, then calm, a farewell to some voters, and rest; then what was written down is checked.
    pub(super) fn run(&mut self) -> Result<Report, Violation> {
        for at in 0..self.nodes.len() {
            self.start(at)?;
        }
        self.plan_fault();
        while self.now.get() < STORM && !self.clients.iter().all(|client| client.is_done) {
            self.step()?;
        }
        self.next_fault = None;
        self.calm()?;
        let end = self.now.get() + CALM;
        self.until("the clients are done", end, |world| world.clients.iter().all(|client| client.is_done))?;
        self.gather(end)?;
        self.farewell(end)?;
        self.gather(end)?;
        let (history, ledger) = (Rc::clone(&self.history), Rc::clone(&self.ledger));
        self.add_client(|port| Box::pin(raw_client::read_all(port, history)));
        self.add_client(|port| Box::pin(bank::audit(port, ledger)));
        self.until("the last reads are done", end, |world| {
            world.clients.iter().all(|client| client.is_done)
        })?;
        self.until("all replicas are at rest", end, Self::is_at_rest)?;
        self.check_the_end()?;
        let mut report = std::mem::take(&mut self.report);
        report.raw_commands = self.history.borrow().len();
        report.transactions = self.ledger.borrow().len();
        report.virtual_time = self.now.get();
        report.messages_lost = self.network.lost;
        report.messages_doubled = self.network.doubled;
        report.digest = self.trace.digest();
        report.trace = self.trace.take_lines();
        Ok(report)
    }

    /// What happened so far, for whoever asked for it.
    pub(super) fn take_trace(&mut self) -> Vec<String> {
        self.trace.take_lines()
    }

    fn until(&mut self, what: &str, end: Duration, holds: impl Fn(&Self) -> bool) -> Result<(), Violation> {
        while !holds(self) {
            if self.now.get() > end {
                let waiting: Vec<_> = self.clients.iter().filter_map(|client| client.waits_for).collect();
                let counts: Vec<_> = self.nodes.iter().map(watch::state).collect();
                let what =
                    format!("waited {CALM:?} until {what}; unanswered commands {waiting:?}, {counts:#?}");
                return Err(violation("quiescence", what));
            }
            self.step()?;
        }
        Ok(())
    }

    /// The storm is over: everything works again.
    fn calm(&mut self) -> Result<(), Violation> {
        self.trace.line(self.now.get(), || "calm".to_owned());
        self.is_calm = true;
        self.network.calm();
        for at in 0..self.nodes.len() {
            self.nodes[at].held_until.fill(Duration::ZERO);
            // A replica with a planned fault might fail in the calm, and one with a fault does not serve.
            if self.nodes[at].life.is_none() || self.nodes[at].may_fail {
                self.crash(at)?;
                self.start(at)?;
            }
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.nodes.clear();
        clock::give(None);
    }
}
