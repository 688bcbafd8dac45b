//! What every test stands on: stores in temporary directories, a recording observer, and the check at the end.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, Once,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{
    CompletionMode, Config, Outcome, Storage,
    command::{Request, Rollback},
    observe::{FailPoint, Moment, Observe},
    storage::Parts,
};

/// A write that looks before it writes, unlike a put: it takes a snapshot and passes through a worker. Each changes
/// something, however many there are of one key.
pub(crate) fn checked(key: &str) -> Rollback {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Rollback { keys: vec![key.into()], start_ts: NEXT.fetch_add(1, Ordering::Relaxed) }
}

/// How long what has to happen may take. Nothing waits longer than it must: a machine that has other things to do is slow, not
/// wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How often stores and groups tick, unless a test has reasons of its own.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Where something has to happen within a time that ends, a deadline or an election: gives it `first`, then twice as much,
/// and so on, until an attempt says that it was enough. What fails at every pace is no matter of pace.
pub(crate) fn with_more_time<T>(first: Duration, attempt: impl Fn(Duration) -> Option<T>) -> T {
    let (began, mut time) = (Instant::now(), first);
    loop {
        if let Some(found) = attempt(time) {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{time:?} were not enough");
        time *= 2;
    }
}

/// Submits a write on one key and waits until a thread is held with it at this kind of moment; sends `behind` more
/// after it. Let the thread go with [`Recorder::let_go`].
pub(crate) fn held<W>(
    tested: &Tested,
    at: &'static str,
    behind: usize,
    write: impl Fn(&str) -> W,
) -> (Answer<()>, Vec<Answer<()>>)
where
    W: Request<Output = ()>,
{
    tested.observer.hold(at);
    let first = Answer::new();
    tested.storage.submit(write("k"), first.callback());
    tested.observer.wait_held(at);
    let waiting: Vec<_> = (0..behind).map(|_| Answer::new()).collect();
    waiting.iter().for_each(|answer| tested.storage.submit(write("k"), answer.callback()));
    (first, waiting)
}

/// Runs a test once per completion mode, each with a directory of its own.
pub(crate) fn in_every_mode(test: impl Fn(CompletionMode, &Path)) {
    static WATCHDOG: Once = Once::new();
    WATCHDOG.call_once(|| drop(thread::spawn(watch_for_deadlocks)));
    for mode in CompletionMode::ALL {
        eprintln!("-- {mode}");
        let dir = tempfile::tempdir().unwrap();
        test(mode, dir.path());
    }
}

/// Ends the process when threads wait for each other's locks: a failed assertion would be lost with its thread.
fn watch_for_deadlocks() {
    loop {
        thread::sleep(Duration::from_millis(200));
        let deadlocks = parking_lot::deadlock::check_deadlock();
        for thread in deadlocks.iter().flatten() {
            eprintln!("deadlock: {:?}\n{:?}", thread.thread_id(), thread.backtrace());
        }
        if !deadlocks.is_empty() {
            std::process::abort();
        }
    }
}

/// A configuration for tests: short ticks, so that nothing waits long, and deadlines that pass for nobody.
pub(crate) fn config(mode: CompletionMode, dir: &Path) -> Config {
    let mut config = Config::new(dir);
    config.completion_mode = mode;
    config.tick = TICK;
    config.default_timeout = PATIENCE;
    config.open_timeout = PATIENCE;
    config
}

/// A store and its observer.
pub(crate) struct Tested {
    pub(crate) storage: Storage,
    pub(crate) observer: Arc<Recorder>,
}

impl Tested {
    pub(crate) fn open(config: Config) -> Self {
        let parts = Parts::on_disk(&config.dir).unwrap();
        Self::with_parts(config, parts)
    }

    pub(crate) fn with_parts(config: Config, parts: Parts) -> Self {
        let observer = Arc::new(Recorder::default());
        let watched: Arc<dyn Observe> = Arc::clone(&observer) as _;
        let storage = Storage::open_with(config, parts, Some(watched)).unwrap();
        observer.clear();
        Self { storage, observer }
    }

    /// The end of every test: all that was accepted is answered once, everything is at rest, and a closed store holds
    /// nothing.
    pub(crate) fn finish(self) {
        wait_for("quiescence", || self.storage.in_flight().is_quiescent());
        self.storage.close();
        assert!(self.storage.in_flight().is_quiescent(), "{:?}", self.storage.in_flight());
        self.observer.check_answers();
    }
}

/// Waits until something holds, which it does sooner or later.
pub(crate) fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited {PATIENCE:?} for {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Counts how often a callback ran and keeps its outcome.
#[derive(Debug)]
pub(crate) struct Answer<T>(Arc<Mutex<Vec<Outcome<T>>>>);

impl<T> Clone for Answer<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone + Send + 'static> Answer<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// A callback that records its outcome here.
    pub(crate) fn callback(&self) -> impl FnOnce(Outcome<T>) + Send + 'static {
        let answers = Arc::clone(&self.0);
        move |outcome| answers.lock().unwrap().push(outcome)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Waits for the one answer.
    pub(crate) fn wait(&self) -> Outcome<T> {
        wait_for("an answer", || self.count() > 0);
        let answers = self.0.lock().unwrap();
        assert_eq!(answers.len(), 1, "a caller is answered exactly once");
        answers[0].clone()
    }
}

/// A gate at which threads can be made to wait.
#[derive(Debug, Default)]
struct Gate {
    closed: bool,
    waiting: usize,
}

/// Keeps every moment with the thread that reached it; can hold threads at a kind of moment and make steps fail.
#[derive(Default)]
pub(crate) struct Recorder {
    moments: Mutex<Vec<(String, Moment)>>,
    gates: Mutex<HashMap<&'static str, Gate>>,
    opened: Condvar,
    failing: Mutex<HashMap<FailPoint, usize>>,
    panicking: Mutex<HashSet<&'static str>>,
    pub(crate) failures: AtomicUsize,
}

impl Recorder {
    /// Threads that reach this kind of moment wait from now on.
    pub(crate) fn hold(&self, kind: &'static str) {
        self.gates.lock().unwrap().entry(kind).or_default().closed = true;
    }

    /// Lets them go on.
    pub(crate) fn let_go(&self, kind: &'static str) {
        self.gates.lock().unwrap().entry(kind).or_default().closed = false;
        self.opened.notify_all();
    }

    /// Waits until a thread is held at this kind of moment.
    pub(crate) fn wait_held(&self, kind: &'static str) {
        wait_for(kind, || self.is_held(kind));
    }

    /// Whether a thread is held at this kind of moment now.
    pub(crate) fn is_held(&self, kind: &'static str) -> bool {
        self.gates.lock().unwrap().get(kind).is_some_and(|gate| gate.waiting > 0)
    }

    /// The next `times` passes of this point fail.
    pub(crate) fn fail(&self, point: FailPoint, times: usize) {
        self.failing.lock().unwrap().insert(point, times);
    }

    /// The next thread that reaches this kind of moment panics.
    pub(crate) fn panic_at(&self, kind: &'static str) {
        self.panicking.lock().unwrap().insert(kind);
    }

    pub(crate) fn moments(&self) -> MutexGuard<'_, Vec<(String, Moment)>> {
        self.moments.lock().unwrap()
    }

    pub(crate) fn clear(&self) {
        self.moments().clear();
    }

    /// How many moments of a kind were seen.
    pub(crate) fn count(&self, wanted: &str) -> usize {
        self.moments().iter().filter(|(_, moment)| moment.name() == wanted).count()
    }

    /// Up to where the log was truncated.
    pub(crate) fn truncated_to(&self) -> u64 {
        let index = |moment: &Moment| if let Moment::Truncating { index, .. } = moment { *index } else { 0 };
        self.moments().iter().map(|(_, moment)| index(moment)).max().unwrap_or(0)
    }

    /// The threads that reached a kind of moment.
    pub(crate) fn threads(&self, wanted: &str) -> HashSet<String> {
        let moments = self.moments();
        moments
            .iter()
            .filter(|(_, moment)| moment.name() == wanted)
            .map(|(thread, _)| thread.clone())
            .collect()
    }

    /// Every admitted command was told exactly once.
    pub(crate) fn check_answers(&self) {
        let mut told: HashMap<u64, usize> = HashMap::new();
        let moments = self.moments();
        for (_, moment) in moments.iter() {
            if let Moment::CallerTold { cid, .. } = moment {
                *told.entry(*cid).or_default() += 1;
            }
        }
        for (_, moment) in moments.iter() {
            if let Moment::Admitted { cid, .. } = moment {
                assert_eq!(told.get(cid), Some(&1), "command {cid} was told {:?} times", told.get(cid));
            }
        }
    }
}

impl Observe for Recorder {
    fn moment(&self, moment: Moment) {
        let thread = thread::current().name().unwrap_or("unnamed").to_owned();
        self.moments().push((thread, moment));
        let kind = moment.name();
        if self.panicking.lock().unwrap().remove(kind) {
            panic!("injected panic at {kind}");
        }
        let mut gates = self.gates.lock().unwrap();
        while gates.get(kind).is_some_and(|gate| gate.closed) {
            gates.entry(kind).or_default().waiting += 1;
            gates = self.opened.wait(gates).unwrap();
            gates.entry(kind).or_default().waiting -= 1;
        }
    }

    fn fails(&self, point: FailPoint) -> bool {
        let mut failing = self.failing.lock().unwrap();
        let Some(times) = failing.get_mut(&point).filter(|times| **times > 0) else { return false };
        *times -= 1;
        self.failures.fetch_add(1, Ordering::Relaxed);
        true
    }
}
