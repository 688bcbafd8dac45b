//! Programs of operations on every form of slot, each step compared with what a plain model says.
//!
//! A program is text: three characters for an operation, the first a letter that names it, the others its arguments (the low
//! four bits of each, so that digits mean themselves); `op.rs` lists them. Blanks and line ends are skipped. So a seed can
//! be read, and so can a program that libFuzzer found.
//!
//! The model keeps no callbacks and no words. It keeps who owns which callback, and how often each was called, with what,
//! how often its fallback ran, and how often its captures were dropped. After each operation both books must agree.

mod op;
mod ledger;
mod make;
mod model;
mod world;
mod slots;
mod shared;
mod in_place;
mod cells;
mod replies;

use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::ledger::Planned;
use crate::op::Op;
use crate::world::World;

/// Programs longer than this are cut: what a step can do does not depend on how many came before.
const MAX_OPERATIONS: usize = 200;

/// Runs one program.
///
/// # Panics
///
/// If the crate did anything else than the model.
pub fn run(program: &[u8]) {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        // libFuzzer's hook ends the process at any panic; the planned ones are part of the programs.
        let unplanned = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<Planned>() {
                unplanned(info);
            }
        }));
    });
    ledger::clear();
    let mut world = World::new();
    for op in Op::parse(program).take(MAX_OPERATIONS) {
        world.step(op);
        world.check();
    }
    world.close();
}

/// Runs an operation of the crate's, and says whether it panicked as planned.
pub(crate) fn planned<R>(operation: impl FnOnce() -> R) -> Result<R, Planned> {
    panic::catch_unwind(AssertUnwindSafe(operation)).map_err(|payload| match payload.downcast() {
        Ok(planned) => *planned,
        Err(other) => panic::resume_unwind(other),
    })
}
