//! The whole life of a callback on one thread: it is called, or it is dropped and a fallback answers.

use std::{hint::black_box, time::Instant};

use super::Lap;
use crate::{
    contender::HandOver,
    work::{closure, take_sum},
};

/// Create, take, call.
pub fn life<H: HandOver, const WORDS: usize>(operations: u64) -> Lap {
    take_sum();
    let start = Instant::now();
    for i in 0..operations {
        let (near, far) = H::open(closure::<WORDS>(black_box(i)));
        H::finish(far, i);
        H::collect(near);
    }
    Lap { elapsed: start.elapsed(), told: take_sum() }
}

/// Create, drop uncalled: the closure runs with the fallback's value.
pub fn must_call_drop<H: HandOver>(operations: u64) -> Lap {
    take_sum();
    let start = Instant::now();
    for i in 0..operations {
        let value = black_box(i);
        H::abandon(closure::<1>(value), move || value);
    }
    Lap { elapsed: start.elapsed(), told: take_sum() }
}
