//! Tests of the model of a disk: what each kind of loss leaves and takes.

use std::path::Path;

use super::{
    always,
    disk::Disk,
    journal::Event,
    loss::{Dice, Loss, Tree, survivors},
};

fn at(path: &str) -> &Path {
    Path::new(path)
}

fn create(fd: i32, path: &str) -> Event<'_> {
    Event::Open { fd, path: at(path), creates: true, truncates: false }
}

fn write(fd: i32, offset: u64, bytes: &[u8]) -> Event<'_> {
    Event::Write { fd, offset, bytes }
}

/// A sync from its beginning to its end.
fn sync(fd: i32) -> [Event<'static>; 2] {
    [Event::SyncBegin { fd, ticket: 0 }, Event::SyncEnd { ticket: 0 }]
}

/// The root as a directory that is open as 1.
fn root() -> Event<'static> {
    Event::Open { fd: 1, path: at("/r"), creates: false, truncates: false }
}

fn left(events: &[Event<'_>], loss: Loss) -> Tree {
    let mut disk = Disk::new(at("/r"), &always);
    events.iter().for_each(|event| disk.apply(event));
    survivors(&disk, loss)
}

fn tree(files: &[(&str, &[u8])]) -> Tree {
    files.iter().map(|(path, bytes)| (path.into(), Some(bytes.to_vec()))).collect()
}

#[test]
fn a_sync_keeps_what_was_written_before_it_began_and_a_name_needs_the_sync_of_its_directory() {
    let [begin, end] = sync(2);
    let file = [root(), create(2, "/r/f"), write(2, 0, b"one"), begin, write(2, 3, b"two"), end];
    assert_eq!(left(&file, Loss::Nothing), tree(&[("f", b"onetwo")]));
    assert_eq!(left(&file, Loss::Everything), tree(&[]), "its name was never synced");
    let named = [&file[..], &sync(1)].concat();
    assert_eq!(left(&named, Loss::Everything), tree(&[("f", b"one")]));
    assert_eq!(left(&named, Loss::Contents), tree(&[("f", b"one\0\0\0")]));
    let half = [&file[..5], &sync(1)].concat();
    assert_eq!(left(&half, Loss::Everything), tree(&[("f", b"")]), "a sync that has not returned");
}

#[test]
fn a_new_name_comes_with_the_loss_of_the_old_one_or_not_at_all() {
    let renamed = [
        &[root(), create(2, "/r/new"), write(2, 0, b"n")][..],
        &sync(2),
        &[create(3, "/r/old"), write(3, 0, b"o")],
        &sync(3),
        &sync(1),
        &[Event::Rename { from: at("/r/new"), to: at("/r/old") }],
    ];
    let renamed = renamed.concat();
    let (before, after) = (tree(&[("new", b"n"), ("old", b"o")]), tree(&[("old", b"n")]));
    assert_eq!(left(&renamed, Loss::Nothing), after);
    assert_eq!(left(&renamed, Loss::Everything), before);
    for seed in 0..20 {
        for loss in [Loss::Ordered(seed), Loss::Random(seed)] {
            let tree = left(&renamed, loss);
            assert!(tree == before || tree == after, "{tree:?}");
        }
    }
    assert_eq!(left(&[&renamed[..], &sync(1)].concat(), Loss::Everything), after);
}

#[test]
fn what_is_unlinked_comes_back_until_its_directory_is_synced() {
    let named = [&[root(), create(2, "/r/f"), write(2, 0, b"f")][..], &sync(2), &sync(1)].concat();
    let unlinked = [&named[..], &[Event::Unlink { path: at("/r/f") }]].concat();
    assert_eq!(left(&unlinked, Loss::Nothing), tree(&[]));
    assert_eq!(left(&unlinked, Loss::Everything), tree(&[("f", b"f")]));
    assert_eq!(left(&[&unlinked[..], &sync(1)].concat(), Loss::Everything), tree(&[]));
}

#[test]
fn a_directory_without_its_name_takes_everything_in_it_along() {
    let open = Event::Open { fd: 3, path: at("/r/d"), creates: false, truncates: false };
    let file = [&[root(), Event::MakeDir { path: at("/r/d") }, open][..], &[create(2, "/r/d/f")], &sync(3)];
    let file = file.concat();
    assert_eq!(left(&file, Loss::Everything), Tree::new());
    let named = left(&[&file[..], &sync(1)].concat(), Loss::Everything);
    assert_eq!(named, Tree::from([("d".into(), None), ("d/f".into(), Some(Vec::new()))]));
}

#[test]
fn the_next_process_has_none_of_the_open_files_and_the_syncs_of_the_last() {
    let [begin, end] = sync(2);
    let file = [root(), create(2, "/r/f"), write(2, 0, b"f"), begin, Event::Start, root()];
    let file = [&file[..], &[end], &sync(1)].concat();
    assert_eq!(left(&file, Loss::Everything), tree(&[("f", b"")]));
}

#[test]
fn unsynced_pages_are_there_in_part_and_sectors_whole() {
    let ones = vec![1; 3 * 4096];
    let file = [&[root(), create(2, "/r/f"), write(2, 0, &ones)][..], &sync(2), &sync(1)].concat();
    let twos = vec![2; 3 * 4096];
    let file = [&file[..], &[write(2, 4096, &twos)]].concat();
    let (mut lengths, mut kept, mut lost) = (Vec::new(), 0, 0);
    for seed in 0..60 {
        for loss in [Loss::Ordered(seed), Loss::Random(seed)] {
            let tree = left(&file, loss);
            let bytes = tree[at("f")].as_ref().unwrap();
            assert!(bytes.len() >= ones.len() && bytes[..4096].iter().all(|byte| *byte == 1));
            for sector in bytes[4096..].chunks(512) {
                assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is written whole");
                kept += usize::from(sector[0] == 2);
                lost += usize::from(sector[0] != 2);
            }
            lengths.push(bytes.len());
        }
    }
    assert!(kept > 500 && lost > 500, "{kept} and {lost}");
    assert!(lengths.iter().any(|len| *len > ones.len()) && lengths.contains(&ones.len()));
}

#[test]
fn dice_fall_on_every_side() {
    let mut dice = Dice::new(1);
    let mut sides = [0; 6];
    (0..6000).for_each(|_| sides[dice.below(6)] += 1);
    assert!(sides.iter().all(|times| (800..1200).contains(times)), "{sides:?}");
}
