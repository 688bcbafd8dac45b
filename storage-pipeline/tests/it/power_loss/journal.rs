//! The journal that `shim.c` writes, as events.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

/// What a process did, in the order in which it took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// Another process begins; the one before has ended, and with it its open files.
    Start,
    Open {
        fd: i32,
        path: &'a Path,
        creates: bool,
        truncates: bool,
    },
    Close {
        fd: i32,
    },
    Write {
        fd: i32,
        offset: u64,
        bytes: &'a [u8],
    },
    Truncate {
        fd: i32,
        len: u64,
    },
    /// A sync of a file or directory was asked for.
    SyncBegin {
        fd: i32,
        ticket: u64,
    },
    /// It has returned.
    SyncEnd {
        ticket: u64,
    },
    Rename {
        from: &'a Path,
        to: &'a Path,
    },
    /// A file or a directory.
    Unlink {
        path: &'a Path,
    },
    MakeDir {
        path: &'a Path,
    },
    /// Lines that the process printed.
    Mark(&'a str),
}

/// The events of a journal. The last record may be cut short, by a kill.
pub(crate) fn events(mut journal: &[u8]) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    while let Some(event) = take_event(&mut journal) {
        events.push(event);
    }
    events
}

fn take_event<'a>(journal: &mut &'a [u8]) -> Option<Event<'a>> {
    let number = u64::from_ne_bytes(take(journal, 8)?.try_into().ok()?);
    let mut word = || Some(u32::from_ne_bytes(take(journal, 4)?.try_into().ok()?));
    let (kind, fd, first_len, second_len) = (word()?, word()?.cast_signed(), word()?, word()?);
    let (first, second) = (take(journal, first_len as usize)?, take(journal, second_len as usize)?);
    let path = |bytes| Path::new(OsStr::from_bytes(bytes));
    Some(match kind {
        1 => Event::Start,
        2 => Event::Open { fd, path: path(first), creates: number & 1 != 0, truncates: number & 2 != 0 },
        3 => Event::Close { fd },
        4 => Event::Write { fd, offset: number, bytes: first },
        5 => Event::Truncate { fd, len: number },
        6 => Event::SyncBegin { fd, ticket: number },
        7 => Event::SyncEnd { ticket: number },
        8 => Event::Rename { from: path(first), to: path(second) },
        9 => Event::Unlink { path: path(first) },
        10 => Event::MakeDir { path: path(first) },
        11 => Event::Mark(std::str::from_utf8(first).expect("the writer prints text")),
        _ => panic!("a record of kind {kind}: not a journal"),
    })
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(head)
}
