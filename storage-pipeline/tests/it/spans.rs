//! The spans of commands, as a subscriber collects them: their names, order, parents and fields, and that each ends.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
    time::Duration,
};

use storage_pipeline::{
    CompletionMode, Storage,
    command::{RawGet, RawPut},
    observe::{FailPoint, Observe},
    spans::Spans,
    storage::Parts,
};
use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    dispatcher::with_default,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::support::{Answer, Recorder, checked, config, in_every_mode, wait_for, with_more_time};

/// A span as it was seen.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    parent: Option<u64>,
    fields: BTreeMap<&'static str, String>,
    handles: usize,
    /// When it began and ended, among all beginnings and ends.
    began: usize,
    ended: Option<usize>,
}

/// Keeps every span. Its clones share what they have seen.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Collected>>);

#[derive(Default)]
struct Collected {
    spans: Vec<Seen>,
    entered: HashMap<ThreadId, Vec<u64>>,
    beats: usize,
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}").replace('"', ""));
    }
}

impl Collected {
    fn beat(&mut self) -> usize {
        self.beats += 1;
        self.beats
    }

    fn at(&mut self, id: &Id) -> &mut Seen {
        &mut self.spans[id.into_u64() as usize - 1]
    }
}

impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut all = self.0.lock().unwrap();
        let current = all.entered.get(&thread::current().id()).and_then(|entered| entered.last().copied());
        let parent = attributes.parent().map(Id::into_u64).or(current.filter(|_| attributes.is_contextual()));
        let began = all.beat();
        let name = attributes.metadata().name();
        let mut seen = Seen { name, parent, handles: 1, began, ..Seen::default() };
        attributes.record(&mut Fields(&mut seen.fields));
        all.spans.push(seen);
        Id::from_u64(all.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.0.lock().unwrap().at(span).fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        let mut all = self.0.lock().unwrap();
        all.entered.entry(thread::current().id()).or_default().push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.entry(thread::current().id()).or_default().pop();
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.0.lock().unwrap().at(id).handles += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut all = self.0.lock().unwrap();
        all.at(&id).handles -= 1;
        let is_last = all.at(&id).handles == 0;
        if is_last {
            let beat = all.beat();
            all.at(&id).ended = Some(beat);
        }
        is_last
    }
}

impl Collector {
    fn spans(&self) -> Vec<Seen> {
        self.0.lock().unwrap().spans.clone()
    }

    fn have_all_ended(&self) -> bool {
        self.spans().iter().all(|span| span.ended.is_some())
    }

    /// The commands of a kind, each with the stages within it.
    fn commands(&self, kind: &str) -> Vec<(Seen, Vec<Seen>)> {
        let spans = self.spans();
        let is_command = |span: &Seen| span.name == "command" && span.fields["kind"] == kind;
        let stages =
            |id: usize| spans.iter().filter(|span| span.parent == Some(id as u64)).cloned().collect();
        let all = spans.iter().zip(1..).filter(|(span, _)| is_command(span));
        all.map(|(span, id)| (span.clone(), stages(id))).collect()
    }
}

/// A store whose spans are collected.
struct Traced {
    collector: Collector,
    dispatch: Dispatch,
    recorder: Arc<Recorder>,
    storage: Storage,
}

impl Traced {
    fn open(mode: CompletionMode, dir: &Path) -> Self {
        let collector = Collector::default();
        let dispatch = Dispatch::new(collector.clone());
        let recorder = Arc::<Recorder>::default();
        let next = Arc::clone(&recorder) as Arc<dyn Observe>;
        let spans = with_default(&dispatch, || Spans::before(next));
        let storage = {
            let parts = Parts::on_disk(dir).unwrap();
            Storage::open_with(config(mode, dir), parts, Some(Arc::new(spans))).unwrap()
        };
        recorder.clear();
        Self { collector, dispatch, recorder, storage }
    }
}

fn names(stages: &[Seen]) -> Vec<&str> {
    stages.iter().map(|stage| stage.name).collect()
}

/// Each stage lasts from the end of the one before it, within the command.
fn assert_one_after_the_other(command: &Seen, stages: &[Seen]) {
    let mut from = command.began;
    for stage in stages {
        assert!(stage.began > from, "{} begins before the end of the stage before it", stage.name);
        from = stage.ended.expect("it has ended");
    }
    assert!(command.ended.expect("it has ended") > from, "the command ends before its last stage");
}

const PUT: [&str; 7] = ["latches", "process", "propose", "commit", "apply", "tell", "release"];
const CHECKED: [&str; 9] =
    ["latches", "snapshot", "workers", "process", "propose", "commit", "apply", "tell", "release"];
const READ: [&str; 5] = ["snapshot", "workers", "process", "tell", "release"];

#[test]
fn a_command_is_a_span_with_one_span_for_each_stage_in_every_mode() {
    in_every_mode(|mode, dir| {
        let Traced { collector, dispatch, recorder: _, storage } = Traced::open(mode, dir);
        with_default(&dispatch, || {
            let _own = tracing::info_span!("of the caller").entered();
            storage.raw_put(b"k", b"v").into_result().unwrap();
        });
        storage.execute(checked("k")).into_result().unwrap();
        storage.raw_get(b"k").into_result().unwrap();
        let refused = RawPut { key: Vec::new(), value: Vec::new() };
        assert!(storage.execute(refused).is_not_executed());
        wait_for("the end of every span", || collector.have_all_ended());
        for (kind, expected, index) in
            [("RawPut", &PUT[..], true), ("Rollback", &CHECKED, true), ("RawGet", &READ, false)]
        {
            let commands = collector.commands(kind);
            let [(command, stages)] = &commands[..] else { panic!("{mode}: {kind}: {commands:?}") };
            assert_eq!(names(stages), expected, "{mode}: {kind}");
            assert_one_after_the_other(command, stages);
            assert_eq!(command.fields["region"], "1");
            assert_eq!(command.fields["outcome"], "applied");
            assert!(command.fields["cid"].parse::<u64>().unwrap() > 0);
            let has_entry = ["index", "term"].map(|field| command.fields.contains_key(field));
            assert_eq!(has_entry, [index; 2], "{mode}: {kind}");
            let parent = command.parent.map(|id| collector.spans()[id as usize - 1].name);
            assert_eq!(parent, (kind == "RawPut").then_some("of the caller"), "{mode}: {kind}");
        }
        storage.close();
    });
}

#[test]
fn a_command_whose_caller_was_told_early_has_its_outcome_then_and_its_span_until_it_is_settled() {
    in_every_mode(|mode, dir| {
        with_more_time(Duration::from_millis(100), |time| told_early(mode, dir, time));
    });
}

/// `None` where the time was too short for a command to reach apply.
fn told_early(mode: CompletionMode, dir: &Path, time: Duration) -> Option<()> {
    let Traced { collector, recorder, storage, .. } = Traced::open(mode, dir);
    recorder.hold("Applying");
    let answer = Answer::new();
    let put = RawPut { key: b"k".to_vec(), value: b"v".to_vec() };
    storage.submit_within(put, time, answer.callback());
    let outcome = answer.wait();
    if outcome.is_not_executed() {
        recorder.let_go("Applying");
        return None;
    }
    assert!(outcome.is_indeterminate(), "{mode}");
    let heard = || collector.commands("RawPut")[0].0.fields.get("outcome").cloned();
    wait_for("the outcome", || heard().as_deref() == Some("indeterminate"));
    recorder.wait_held("Applying");
    let (command, stages) = &collector.commands("RawPut")[0];
    assert_eq!((command.ended, names(stages).last()), (None, Some(&"apply")), "{mode}");
    recorder.let_go("Applying");
    wait_for("the end of every span", || collector.have_all_ended());
    let (command, stages) = &collector.commands("RawPut")[0];
    assert_eq!(names(stages), ["latches", "process", "propose", "commit", "apply", "release"], "{mode}");
    assert_one_after_the_other(command, stages);
    storage.close();
    Some(())
}

#[test]
fn every_span_ends_with_a_store_that_a_fault_stopped() {
    in_every_mode(|mode, dir| {
        let Traced { collector, recorder, storage, .. } = Traced::open(mode, dir);
        recorder.fail(FailPoint::LogWrite, 1);
        assert!(storage.raw_put(b"k", b"v").is_indeterminate(), "{mode}");
        assert!(storage.execute(RawGet { key: b"k".to_vec() }).is_not_executed(), "{mode}");
        storage.close();
        drop(storage);
        wait_for("the end of every span", || collector.have_all_ended());
        let (command, stages) = &collector.commands("RawPut")[0];
        assert_eq!(command.fields["outcome"], "indeterminate", "{mode}");
        assert_eq!(names(stages), ["latches", "process", "propose", "commit"], "{mode}");
        assert_one_after_the_other(command, stages);
    });
}
