//! A directory as the journal says it is: what every process sees of it, and what of that a power loss must leave.
//! Hands on [`Disk`], which `loss` asks what is left. Pure.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::journal::Event;

/// A file or directory, whatever its name is by now.
pub(crate) type NodeId = usize;

/// A change of a file's contents.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    Write { offset: u64, bytes: &'a [u8] },
    Truncate { len: u64 },
}

/// A change of a directory: names that mean something else afterwards, all at once or not at all.
#[derive(Clone, Debug)]
pub(crate) struct Renaming {
    /// Its place among all renamings of the disk.
    pub(crate) order: usize,
    pub(crate) names: Vec<(OsString, Option<NodeId>)>,
}

/// What happened to a file or a directory, and how much of it a finished sync covers.
#[derive(Clone, Debug)]
pub(crate) struct History<T> {
    pub(crate) changes: Vec<T>,
    pub(crate) synced: usize,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { changes: Vec::new(), synced: 0 }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Node<'a> {
    File(History<Change<'a>>),
    Dir(History<Renaming>),
}

/// Says of a sync whether it reaches the disk, by the path that was opened.
pub(crate) type Reaches<'f> = &'f dyn Fn(&Path) -> bool;

/// Everything below a root that was there before, empty.
pub(crate) struct Disk<'a, 'f> {
    pub(crate) nodes: Vec<Node<'a>>,
    /// Renamings so far, and how many of them came before the last sync of a directory.
    pub(crate) renamings: usize,
    pub(crate) renamings_synced: usize,
    root: PathBuf,
    /// What the processes see.
    live: HashMap<PathBuf, NodeId>,
    open: HashMap<i32, (NodeId, PathBuf)>,
    syncing: HashMap<u64, (NodeId, usize, usize)>,
    reaches: Reaches<'f>,
}

pub(crate) const ROOT: NodeId = 0;

impl<'a, 'f> Disk<'a, 'f> {
    /// An empty root, on a disk that every sync reaches for which `reaches` says so.
    pub(crate) fn new(root: &Path, reaches: Reaches<'f>) -> Self {
        Self {
            nodes: vec![Node::Dir(History::default())],
            renamings: 0,
            renamings_synced: 0,
            root: root.to_owned(),
            live: HashMap::from([(PathBuf::new(), ROOT)]),
            open: HashMap::new(),
            syncing: HashMap::new(),
            reaches,
        }
    }

    /// # Panics
    /// If the journal contradicts itself: something was done that it does not tell.
    pub(crate) fn apply(&mut self, event: &Event<'a>) {
        match *event {
            Event::Start => {
                self.open.clear();
                self.syncing.clear();
            }
            Event::Open { fd, path, creates, truncates } => self.open(fd, path, creates, truncates),
            Event::Close { fd } => drop(self.open.remove(&fd)),
            Event::Write { fd, offset, bytes } => self.change(fd, Change::Write { offset, bytes }),
            Event::Truncate { fd, len } => self.change(fd, Change::Truncate { len }),
            Event::SyncBegin { fd, ticket } => self.sync_begin(fd, ticket),
            Event::SyncEnd { ticket } => self.sync_end(ticket),
            Event::Rename { from, to } => self.rename(from, to),
            Event::Unlink { path } => {
                let path = self.inside(path);
                self.live.remove(&path).expect("what is unlinked is there");
                self.name(&path, None, None);
            }
            Event::MakeDir { path } => {
                let path = self.inside(path);
                self.create(path, Node::Dir(History::default()));
            }
            Event::Mark(_) => {}
        }
    }

    fn open(&mut self, fd: i32, path: &Path, creates: bool, truncates: bool) {
        let path = self.inside(path);
        if creates && !self.live.contains_key(&path) {
            self.create(path.clone(), Node::File(History::default()));
        }
        let id =
            *self.live.get(&path).unwrap_or_else(|| panic!("{} is opened but not there", path.display()));
        self.open.insert(fd, (id, path));
        if truncates {
            self.change(fd, Change::Truncate { len: 0 });
        }
    }

    fn change(&mut self, fd: i32, change: Change<'a>) {
        let (id, path) = &self.open[&fd];
        match &mut self.nodes[*id] {
            Node::File(history) => history.changes.push(change),
            Node::Dir(_) => panic!("{} is written to but a directory", path.display()),
        }
    }

    /// What is changed from here on may miss this sync.
    fn sync_begin(&mut self, fd: i32, ticket: u64) {
        let (id, path) = &self.open[&fd];
        if (self.reaches)(path) {
            let changes = match &self.nodes[*id] {
                Node::File(history) => history.changes.len(),
                Node::Dir(history) => history.changes.len(),
            };
            self.syncing.insert(ticket, (*id, changes, self.renamings));
        }
    }

    fn sync_end(&mut self, ticket: u64) {
        let Some((id, changes, renamings)) = self.syncing.remove(&ticket) else { return };
        match &mut self.nodes[id] {
            Node::File(history) => history.synced = history.synced.max(changes),
            Node::Dir(history) => {
                history.synced = history.synced.max(changes);
                self.renamings_synced = self.renamings_synced.max(renamings);
            }
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let (from, to) = (self.inside(from), self.inside(to));
        assert_eq!(from.parent(), to.parent(), "a move between directories is not modelled");
        let id = self.live.remove(&from).expect("what is renamed is there");
        self.live.insert(to.clone(), id);
        self.name(&to, Some(id), Some(&from));
    }

    fn create(&mut self, path: PathBuf, node: Node<'a>) {
        let id = self.nodes.len();
        self.nodes.push(node);
        self.name(&path, Some(id), None);
        self.live.insert(path, id);
    }

    /// From now on a name means this, and the one that it had before means nothing.
    fn name(&mut self, path: &Path, id: Option<NodeId>, before: Option<&Path>) {
        let name = |path: &Path| path.file_name().map(OsStr::to_owned).expect("the root keeps its name");
        let above = path.parent().expect("the root keeps its name");
        let names = before.map(|before| (name(before), None)).into_iter().chain([(name(path), id)]);
        let renaming = Renaming { order: self.renamings, names: names.collect() };
        let above = self.live[above];
        let Node::Dir(history) = &mut self.nodes[above] else { panic!("{} lies in a file", path.display()) };
        history.changes.push(renaming);
        self.renamings += 1;
    }

    fn inside(&self, path: &Path) -> PathBuf {
        let inside = path.strip_prefix(&self.root).expect("the journal tells of nothing outside");
        // Without the slash at the end that some callers leave.
        inside.components().collect()
    }
}
