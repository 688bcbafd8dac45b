//! A node as a process of its own that can be killed, and that runs commands for this one: `crash-node`.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{Cause, Error, Outcome};

use super::process::send;
use crate::support::PATIENCE;

/// A handle to the process. Clones share it; whoever waits for an answer when it dies hears that nobody knows.
#[derive(Clone)]
pub(crate) struct Victim(Arc<Shared>);

struct Shared {
    child: Mutex<Child>,
    input: Mutex<ChildStdin>,
    waiting: Arc<Mutex<Waiting>>,
    is_paused: AtomicBool,
    next: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    is_dead: bool,
    answers: HashMap<u64, mpsc::Sender<Outcome<String>>>,
}

impl Victim {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(file: &Path) -> (Self, SocketAddr) {
        Self::start_in(file, [])
    }

    /// As above, with more in its environment.
    pub(crate) fn start_in<const N: usize>(
        file: &Path,
        environment: [(&str, PathBuf); N],
    ) -> (Self, SocketAddr) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crash-node"))
            .arg(file)
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let waiting = Arc::<Mutex<Waiting>>::default();
        let shared = Shared {
            child: Mutex::new(child),
            input: Mutex::new(input),
            waiting: Arc::clone(&waiting),
            is_paused: AtomicBool::default(),
            next: AtomicU64::default(),
        };
        let victim = Self(Arc::new(shared));
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || listen(BufReader::new(output), &waiting, &sender));
        let address = receiver.recv_timeout(PATIENCE).expect("it listens").parse().unwrap();
        (victim, address)
    }

    /// Runs a command, as `crash-node` takes it.
    pub(crate) fn ask(&self, command: &str) -> Outcome<String> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = mpsc::channel();
        {
            let mut waiting = self.0.waiting.lock().unwrap();
            if waiting.is_dead {
                return Outcome::NotExecuted(Error::Closed);
            }
            waiting.answers.insert(id, sender);
        }
        // Where it is just dying the answer does not come.
        let _ = writeln!(self.0.input.lock().unwrap(), "{id} {command}");
        let until = Instant::now() + PATIENCE;
        loop {
            match receiver.recv_timeout(Duration::from_millis(50)) {
                Ok(outcome) => return outcome,
                Err(mpsc::RecvTimeoutError::Disconnected) => return Outcome::Indeterminate(Cause::Closed),
                // Its answer, when it goes on, is heard by nobody.
                Err(_) if self.0.is_paused.load(Ordering::Relaxed) => {
                    return Outcome::Indeterminate(Cause::DeadlineExceeded);
                }
                Err(_) => assert!(Instant::now() < until, "{command} is not answered"),
            }
        }
    }

    pub(crate) fn leads(&self) -> bool {
        self.ask("leads") == Outcome::Applied("true".to_owned())
    }

    /// Makes it stand still, as a machine does that has no time for it. Nobody waits for its answers from now on.
    pub(crate) fn pause(&self) {
        self.0.is_paused.store(true, Ordering::Relaxed);
        send("-STOP", self.0.child.lock().unwrap().id());
    }

    /// Lets it go on, and begin with what it is asked meanwhile: that is waited for again.
    pub(crate) fn go_on(&self, ask: impl Fn(usize) + Sync, times: usize) {
        self.0.is_paused.store(false, Ordering::Relaxed);
        thread::scope(|scope| {
            for n in 0..times {
                let ask = &ask;
                scope.spawn(move || ask(n));
            }
            // They have sent what they ask by then.
            thread::sleep(Duration::from_millis(20));
            send("-CONT", self.0.child.lock().unwrap().id());
        });
    }

    /// kill -9.
    pub(crate) fn kill(&self) {
        let mut child = self.0.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Shared {
    /// Where the test has failed nobody has killed it.
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Hands on each answer, until there are no more.
fn listen(mut output: impl BufRead, waiting: &Mutex<Waiting>, address: &mpsc::Sender<String>) {
    let mut line = String::new();
    // A last line without its end was torn by the kill.
    while output.read_line(&mut line).is_ok() && line.ends_with('\n') {
        let words = line.trim_end_matches('\n');
        if let Some(found) = words.strip_prefix("listening on ") {
            address.send(found.to_owned()).unwrap();
        } else {
            hand_on(words, waiting);
        }
        line.clear();
    }
    let mut waiting = waiting.lock().unwrap();
    waiting.is_dead = true;
    waiting.answers.clear();
}

fn hand_on(words: &str, waiting: &Mutex<Waiting>) {
    let (id, answer) = words.split_once(' ').unwrap();
    let outcome = match answer.split_once(' ').unwrap_or((answer, "")) {
        ("applied", value) => Outcome::Applied(value.to_owned()),
        ("refused", _) => Outcome::NotExecuted(Error::Closed),
        ("unknown", _) => Outcome::Indeterminate(Cause::Closed),
        other => panic!("{other:?}"),
    };
    let waits = waiting.lock().unwrap().answers.remove(&id.parse().unwrap());
    // Whoever asked one that stood still may have gone.
    let _ = waits.expect("each command is answered once").send(outcome);
}
