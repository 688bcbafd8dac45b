//! What a power loss leaves of a [`Disk`], by several models of what a disk and a file system may do. Pure.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::disk::{Change, Disk, History, Node, NodeId, ROOT, Renaming};

/// The unit in which a system writes a file's contents back, and the one that a disk writes whole.
const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// What is left of changes that no sync covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of them: what a kill leaves.
    Nothing,
    /// None of them.
    Everything,
    /// No contents, but lengths and names: files are as long as they were, and end in zeros.
    Contents,
    /// Of the names as many as a journal had written, in order; of each file's changes the first ones, the last of them
    /// torn at a sector. As ext4 does it.
    Ordered(u64),
    /// Of the names as many as each directory had written, in order; of each page what it held at some
    /// moment, of some sector by sector.
    Random(u64),
}

/// A directory's contents: a file's bytes, or nothing for a directory.
pub(crate) type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Numbers that look random, the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // The generator known as SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % bound as u64) as usize
    }
}

/// What is left.
pub(crate) fn survivors(disk: &Disk<'_, '_>, loss: Loss) -> Tree {
    let mut dice = match loss {
        Loss::Ordered(seed) | Loss::Random(seed) => Dice::new(seed),
        _ => Dice::new(0),
    };
    let journalled = match loss {
        Loss::Ordered(_) => disk.renamings_synced + dice.below(disk.renamings - disk.renamings_synced + 1),
        _ => 0,
    };
    let mut tree = Tree::new();
    // A file with two names, an old one and a new one, has the same contents under both.
    let mut contents = BTreeMap::new();
    let mut dirs = vec![(PathBuf::new(), ROOT)];
    while let Some((path, id)) = dirs.pop() {
        let Node::Dir(history) = &disk.nodes[id] else { unreachable!("only directories are visited") };
        for (name, id) in names(history, loss, journalled, &mut dice) {
            let path = path.join(name);
            match &disk.nodes[id] {
                Node::File(history) => {
                    let bytes = contents.entry(id).or_insert_with(|| bytes(history, loss, &mut dice));
                    tree.insert(path, Some(bytes.clone()));
                }
                Node::Dir(_) => {
                    tree.insert(path.clone(), None);
                    dirs.push((path, id));
                }
            }
        }
    }
    tree
}

fn names(
    history: &History<Renaming>,
    loss: Loss,
    journalled: usize,
    dice: &mut Dice,
) -> BTreeMap<OsString, NodeId> {
    let mut names = BTreeMap::new();
    let unsynced = history.changes.len() - history.synced;
    let random = history.synced + dice.below(unsynced + 1);
    for (place, renaming) in history.changes.iter().enumerate() {
        let kept = match loss {
            Loss::Nothing | Loss::Contents => true,
            Loss::Everything => false,
            Loss::Ordered(_) => renaming.order < journalled,
            Loss::Random(_) => place < random,
        };
        if place < history.synced || kept {
            for (name, id) in &renaming.names {
                match id {
                    Some(id) => names.insert(name.clone(), *id),
                    None => names.remove(name),
                };
            }
        }
    }
    names
}

fn bytes(history: &History<Change<'_>>, loss: Loss, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (synced, rest) = history.changes.split_at(history.synced);
    for change in synced {
        put(&mut bytes, change);
    }
    match loss {
        Loss::Nothing => rest.iter().for_each(|change| put(&mut bytes, change)),
        Loss::Everything => {}
        Loss::Contents => {
            let before = bytes.clone();
            rest.iter().for_each(|change| put(&mut bytes, change));
            let kept = before.len().min(bytes.len());
            bytes[..kept].copy_from_slice(&before[..kept]);
            bytes[kept..].fill(0);
        }
        Loss::Ordered(_) => {
            let whole = dice.below(rest.len() + 1);
            rest[..whole].iter().for_each(|change| put(&mut bytes, change));
            if let Some(Change::Write { offset, bytes: torn }) = rest.get(whole) {
                let len = to_sector(*offset, dice.below(torn.len() + 1));
                put(&mut bytes, &Change::Write { offset: *offset, bytes: &torn[..len] });
            }
        }
        Loss::Random(_) => bytes = pages(history, &bytes, dice),
    }
    bytes
}

fn put(file: &mut Vec<u8>, change: &Change<'_>) {
    match change {
        Change::Truncate { len } => file.resize(*len as usize, 0),
        Change::Write { bytes: [], .. } => {}
        Change::Write { offset, bytes } => {
            let at = *offset as usize;
            file.resize(file.len().max(at + bytes.len()), 0);
            file[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// Every page as it was written back at some moment, or never; some of them sector by sector. The file is as long as it
/// was at the last of these moments.
fn pages(history: &History<Change<'_>>, before: &[u8], dice: &mut Dice) -> Vec<u8> {
    let changes = &history.changes[history.synced..];
    let mut now = before.to_vec();
    let mut lengths = vec![now.len()];
    for change in changes {
        put(&mut now, change);
        lengths.push(now.len());
    }
    let longest = *lengths.iter().max().expect("there is one at least");
    let mut written = BTreeMap::<usize, Vec<usize>>::new();
    for page in (0..longest).step_by(PAGE) {
        let moment = |dice: &mut Dice| match dice.below(4) {
            0 => 0,
            1 => dice.below(changes.len() + 1),
            _ => changes.len(),
        };
        let (whole, is_torn) = (moment(dice), dice.below(8) == 0);
        for sector in (page..page + PAGE).step_by(SECTOR) {
            let moment = if is_torn { moment(dice) } else { whole };
            written.entry(moment).or_default().push(sector);
        }
    }
    let mut kept = vec![0; longest];
    kept[..before.len()].copy_from_slice(before);
    now = before.to_vec();
    for (moment, change) in (1..).zip(changes) {
        put(&mut now, change);
        for sector in written.get(&moment).into_iter().flatten().filter(|sector| **sector < now.len()) {
            let end = (sector + SECTOR).min(now.len());
            kept[*sector..end].copy_from_slice(&now[*sector..end]);
        }
    }
    let last = written.last_key_value().map_or(0, |(moment, _)| *moment);
    kept.truncate(lengths[last]);
    kept
}

/// The length at or below `len` at which a write at `offset` ends with a sector.
fn to_sector(offset: u64, len: usize) -> usize {
    let end = offset as usize + len;
    (end - end % SECTOR).saturating_sub(offset as usize)
}

/// Makes a directory what a tree says.
pub(crate) fn write_tree(tree: &Tree, dir: &Path) -> io::Result<()> {
    for (path, bytes) in tree {
        match bytes {
            None => fs::create_dir_all(dir.join(path))?,
            Some(bytes) => fs::write(dir.join(path), bytes)?,
        }
    }
    Ok(())
}

/// The tree that a directory is.
pub(crate) fn read_tree(dir: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut dirs = vec![PathBuf::new()];
    while let Some(inside) = dirs.pop() {
        for entry in fs::read_dir(dir.join(&inside))? {
            let path = inside.join(entry?.file_name());
            if dir.join(&path).is_dir() {
                tree.insert(path.clone(), None);
                dirs.push(path);
            } else {
                let bytes = fs::read(dir.join(&path))?;
                tree.insert(path, Some(bytes));
            }
        }
    }
    Ok(tree)
}
