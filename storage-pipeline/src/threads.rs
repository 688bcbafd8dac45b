//! Starting and joining the pipeline's threads. A thread that panics poisons the store; a blocking call asks here
//! whether it would block one of them.

use std::{
    cell::Cell,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{Builder, JoinHandle},
};

use crate::scheduler::Scheduler;

thread_local! {
    static IS_PIPELINE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the current thread is one of a pipeline's, and must therefore not wait for one.
pub(crate) fn is_pipeline() -> bool {
    IS_PIPELINE.with(Cell::get)
}

/// Starts a thread of the pipeline.
///
/// # Errors
/// The operating system's refusal.
pub(crate) fn spawn(
    name: &str,
    scheduler: &Arc<Scheduler>,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let scheduler = Arc::clone(scheduler);
    let own_name = name.to_owned();
    Builder::new().name(name.to_owned()).spawn(move || {
        IS_PIPELINE.with(|is| is.set(true));
        // What the body owned is gone after a panic, and nothing of the store is used any more but its answers.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
            scheduler.poison(&format!("thread {own_name} panicked: {}", words(&*payload)));
        }
    })
}

/// What a panic said.
fn words(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}
