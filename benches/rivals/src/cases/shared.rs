//! The whole life of a slot with two owners, on one thread.

use std::{hint::black_box, time::Instant};

use super::Lap;
use crate::{
    contender::Slot,
    work::{closure, take_sum, tell},
};

/// Create, clone, complete by one handle, lose by the other, drop both.
pub fn shared_life<S: Slot + Clone>(operations: u64) -> Lap {
    take_sum();
    let start = Instant::now();
    for i in 0..operations {
        let scheduler = S::armed(closure::<1>(black_box(i)));
        let proposal = scheduler.clone();
        black_box((&scheduler, &proposal));
        let won = proposal.complete(i);
        drop(proposal);
        let won_again = scheduler.complete(i);
        // Adds nothing if all is well.
        tell(u64::from(!won) + u64::from(won_again));
    }
    Lap { elapsed: start.elapsed(), told: take_sum() }
}
