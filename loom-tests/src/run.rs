//! Running a model to exhaustion, and saying how many interleavings that were.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Explores every interleaving of `body`, without a bound on preemptions, and prints how many there were.
///
/// # Panics
///
/// If an interleaving fails, or if there was only one: a model in which nothing can happen in two ways proves nothing.
pub fn model(body: impl Fn() + Send + Sync + 'static) {
    explore(None, body);
}

/// The same with a bound on preemptions, where without one the model would take minutes.
///
/// # Panics
///
/// As [`model`].
pub fn bounded_model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    explore(Some(preemptions), body);
}

fn explore(preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        body();
    });
    let executions = executions.load(Ordering::Relaxed);
    let bound = preemptions.map_or(String::new(), |most| format!(" of at most {most} preemptions"));
    println!("explored {executions} interleavings{bound}");
    assert!(executions > 1, "nothing was interleaved");
}
