//! Counts allocations in a binary of its own, so that counting does not disturb the one that measures time.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    error::Error,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
};

use rivals::{
    cases::BATCH,
    measure::{WorkNotDone, checked_lap},
    report::{Counts, Heap},
    roster::{Entry, roster},
};

/// The system's allocator, with two counters.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: all requests are passed on as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // ORDERING: Relaxed, read after the threads have been joined.
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("count: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut counts = Counts::new();
    for entry in roster() {
        counts
            .entry(entry.case.name().to_owned())
            .or_default()
            .insert(entry.rival.to_owned(), count(&entry)?);
    }
    if std::env::args().any(|argument| argument == "--json") {
        println!("{}", serde_json::to_string_pretty(&counts)?);
        return Ok(());
    }
    for (case, rivals) in counts {
        println!("\n| {case} | allocations | bytes |\n|---|---|---|");
        for (rival, Heap { allocations, bytes }) in rivals {
            println!("| {rival} | {allocations:.2} | {bytes:.1} |");
        }
    }
    Ok(())
}

/// What an operation asks for: the difference of a long and a short lap, without what a lap needs itself.
fn count(entry: &Entry) -> Result<Heap, WorkNotDone> {
    let (few, many) = (4 * BATCH, 20 * BATCH);
    // The first lap of all may allocate what stays for good.
    checked_lap(entry, few)?;
    let short = counted(entry, few)?;
    let long = counted(entry, many)?;
    let per_operation = |long: u64, short: u64| long.saturating_sub(short) as f64 / (many - few) as f64;
    Ok(Heap { allocations: per_operation(long.0, short.0), bytes: per_operation(long.1, short.1) })
}

fn counted(entry: &Entry, operations: u64) -> Result<(u64, u64), WorkNotDone> {
    let now = || (ALLOCATIONS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
    let before = now();
    checked_lap(entry, operations)?;
    let after = now();
    Ok((after.0 - before.0, after.1 - before.1))
}
