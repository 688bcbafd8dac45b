//! An observer that makes a span of the crate `tracing` for each command, and one for each stage of its life within that.
//! Whoever installs it sees where a command is and how long each step took; a store without it makes none.

mod course;

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use tracing::{
    Dispatch, Span,
    dispatcher::{get_default, with_default},
    field::Empty,
};

use crate::observe::{FailPoint, Moment, Observe, entries::Entries};
use course::{Course, Stage};

/// Each command as a span `command` with the fields `cid`, `kind` and `region`, then `index` and `term` once raft has it and
/// `outcome` once its caller is told. Within it one span after the other for the stages `latches`, `snapshot`, `workers`, `process`,
/// `propose`, `commit`, `apply`, `tell` and `release`, as far as a command passes them. Their level is DEBUG, their target
/// [`Spans::TARGET`].
///
/// The span of a command belongs to the span in which it was submitted, if there is one. It ends when the command is off the
/// books, however early its caller was told; of a command that is still on them when the store ends it ends with the observer.
///
/// All of them go to the subscriber that was the default of the thread on which this was made, since
/// the threads of a pipeline have none of their own.
///
/// ```
/// use std::sync::Arc;
/// use storage_pipeline::{Config, Storage, spans::Spans, storage::Parts};
///
/// let dir = tempfile::tempdir()?;
/// let config = Config::new(dir.path());
/// let parts = Parts::on_disk(&config.dir)?;
/// let storage = Storage::open_with(config, parts, Some(Arc::new(Spans::default())))?;
/// assert!(storage.raw_put(b"key", b"value").is_applied());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Spans {
    dispatch: Dispatch,
    open: Mutex<HashMap<u64, Arc<Mutex<Open>>>>,
    entries: Mutex<Entries>,
    next: Option<Arc<dyn Observe>>,
}

/// A command that is on the books.
struct Open {
    command: Span,
    stage: Span,
    course: Course,
}

impl Default for Spans {
    fn default() -> Self {
        let dispatch = get_default(Dispatch::clone);
        Self { dispatch, open: Mutex::default(), entries: Mutex::default(), next: None }
    }
}

impl Spans {
    /// The target of the spans.
    pub const TARGET: &'static str = "storage_pipeline::command";

    /// Makes the spans first, and tells and asks another observer afterwards.
    #[must_use]
    pub fn before(next: Arc<dyn Observe>) -> Self {
        Self { next: Some(next), ..Self::default() }
    }

    /// Makes spans where the default subscriber of this thread wants them, for a store that somebody else may observe as well.
    /// Yields who observes the store then.
    #[must_use]
    pub fn wanted(observer: Option<Arc<dyn Observe>>) -> Option<Arc<dyn Observe>> {
        if !tracing::span_enabled!(target: Spans::TARGET, tracing::Level::DEBUG, "command") {
            return observer;
        }
        Some(Arc::new(Self { next: observer, ..Self::default() }))
    }

    fn admit(&self, cid: u64, region: u64, kind: &'static str, is_read: bool) {
        let command = tracing::debug_span!(
            target: Spans::TARGET, "command", cid, kind, region, index = Empty, term = Empty, outcome = Empty
        );
        let course = Course::begin(is_read);
        let stage = span_of(&command, course.stage());
        self.open.lock().insert(cid, Arc::new(Mutex::new(Open { command, stage, course })));
    }

    /// Passes a moment of one command. The lock of that command is held while the subscriber hears of it, and no other.
    fn pass(&self, cid: u64, moment: Moment) {
        let Some(open) = self.open.lock().get(&cid).cloned() else { return };
        let mut open = open.lock();
        match moment {
            Moment::Proposed { index, term, .. } => {
                open.command.record("index", index).record("term", term);
            }
            Moment::CallerTold { outcome, .. } => {
                open.command.record("outcome", outcome.name());
            }
            _ => {}
        }
        if let Some(stage) = open.course.pass(moment) {
            open.stage = Span::none();
            open.stage = span_of(&open.command, stage);
        }
    }

    /// A command is off the books: its spans end here.
    fn end(&self, cid: u64) {
        let open = self.open.lock().remove(&cid);
        drop(open);
    }

    fn note(&self, moment: Moment) {
        let concerned = self.entries.lock().pass(moment);
        concerned.into_iter().for_each(|cid| self.pass(cid, moment));
        match moment {
            Moment::Admitted { cid, region, kind, is_read } => self.admit(cid, region, kind, is_read),
            Moment::Released { cid, .. } => self.end(cid),
            _ => {
                if let Some(cid) = moment.cid() {
                    self.pass(cid, moment);
                }
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // The part ends before the whole.
        self.stage = Span::none();
    }
}

impl Observe for Spans {
    fn moment(&self, moment: Moment) {
        with_default(&self.dispatch, || self.note(moment));
        if let Some(next) = &self.next {
            next.moment(moment);
        }
    }

    fn fails(&self, point: FailPoint) -> bool {
        self.next.as_ref().is_some_and(|next| next.fails(point))
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans").field("open", &self.open.lock().len()).finish_non_exhaustive()
    }
}

/// A span has the name that stands in the code, so each stage has a line.
fn span_of(command: &Span, stage: Stage) -> Span {
    macro_rules! named {
        ($($stage:ident => $name:literal,)*) => {
            match stage { $(Stage::$stage => tracing::debug_span!(target: Spans::TARGET, parent: command, $name),)* }
        };
    }
    named! {
        Latches => "latches",
        Snapshot => "snapshot",
        Workers => "workers",
        Process => "process",
        Propose => "propose",
        Commit => "commit",
        Apply => "apply",
        Tell => "tell",
        Release => "release",
    }
}
