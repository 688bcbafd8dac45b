//! Counts allocations, by the group of threads that made them. A binary opts in by making [`Counting`] its global
//! allocator; where none did, every count is zero.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use crate::cpu::GROUPS;

/// The group of threads that are none of the pipeline's: callers, mostly.
pub const OTHERS: &str = "caller";

const GROUP_COUNT: usize = GROUPS.len() + 1;
const NOT_NAMED: usize = GROUPS.len();

static COUNTS: [AtomicU64; GROUP_COUNT] = [const { AtomicU64::new(0) }; GROUP_COUNT];

thread_local! {
    static GROUP: Cell<usize> = const { Cell::new(NOT_NAMED) };
    static PAUSED: Cell<bool> = const { Cell::new(false) };
}

/// The system's allocator, with a counter for each group of threads.
#[derive(Debug)]
pub struct Counting;

fn count() {
    // A thread that ends has no locals any more; what it frees and allocates then belongs to no write.
    let paused = PAUSED.try_with(Cell::get).unwrap_or(true);
    if !paused {
        let group = GROUP.try_with(Cell::get).unwrap_or(NOT_NAMED);
        // ORDERING: Relaxed; a statistic. Exact readers read it when the counted threads are at rest.
        COUNTS[group].fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every request is passed on to the system's allocator as it is. Counting allocates nothing: its thread locals
// are built at compile time and have no destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Counts the current thread's allocations to its group from here on. Cheap where that is done already, so that an
/// observer can call it at every moment.
pub fn name_thread() {
    if GROUP.get() == NOT_NAMED
        && let Some(name) = thread::current().name()
        && let Some(group) = GROUPS.iter().position(|group| name.starts_with(group))
    {
        GROUP.set(group);
    }
}

/// Runs something whose allocations are not counted: a stand-in for a store, which allocates in its own way.
pub fn not_counted<R>(f: impl FnOnce() -> R) -> R {
    let before = PAUSED.replace(true);
    let result = f();
    PAUSED.set(before);
    result
}

/// How many allocations each group has made until a moment. A reallocation counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations([u64; GROUP_COUNT]);

impl Allocations {
    /// Until now.
    #[must_use]
    pub fn now() -> Self {
        Self(std::array::from_fn(|group| COUNTS[group].load(Ordering::Relaxed)))
    }

    /// Those made since an earlier moment, by group.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> BTreeMap<&'static str, u64> {
        let names = GROUPS.into_iter().chain([OTHERS]);
        names.zip(self.0.iter().zip(earlier.0)).map(|(name, (now, then))| (name, now - then)).collect()
    }
}
