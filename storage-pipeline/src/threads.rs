//! Starting and joining the pipeline's threads. A thread that panics poisons the store; a blocking call asks here
//! whether it would block one of them.

use std::{
    cell::Cell,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{Builder, JoinHandle},
};

use crate::scheduler::{Scheduler, task::dispose};

thread_local! {
    static IS_PIPELINE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the current thread is one of a pipeline's, or runs a callback: it must not wait for a pipeline then.
pub(crate) fn is_pipeline() -> bool {
    IS_PIPELINE.with(Cell::get)
}

/// Runs a caller's callback, which does not panic out of this. On whatever thread it runs, it may stand between a latch
/// and its release, so it must not wait for a pipeline.
pub(crate) fn in_callback<R>(callback: impl FnOnce() -> R) -> R {
    let before = IS_PIPELINE.replace(true);
    let result = callback();
    IS_PIPELINE.set(before);
    result
}

/// Runs a part of a pipeline, on a thread of it or on a caller's. A panic in it poisons the store: what the part owned is
/// gone, and nothing of the store is used any more but its answers.
pub(crate) fn guard(name: &str, scheduler: &Scheduler, part: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(part)) {
        scheduler.poison(&format!("thread {name} panicked: {}", words(&*payload)));
        dispose(payload);
    }
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
        IS_PIPELINE.set(true);
        guard(&own_name, &scheduler, body);
    })
}

/// What a panic said.
fn words(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}
