//! One thread creates, the other takes and calls. They meet once a batch, so that the meeting weighs little.

use std::{collections::VecDeque, hint::black_box, thread, time::Instant};

use super::{
    BATCH, Lap,
    relay::{Arriving, Sending, relay},
};
use crate::{
    contender::HandOver,
    work::{Closure, closure, take_sum},
};

/// Batches under way at the same time, so that both threads have something to do.
const IN_FLIGHT: usize = 2;

/// Create here, complete there; here again collects what is left to do, for a channel that brings the result back.
pub fn hand_over<H: HandOver>(operations: u64) -> Lap {
    let (sending, there) = relay(IN_FLIGHT);
    let (back, returned) = relay(IN_FLIGHT + 1);
    thread::scope(|scope| {
        let helper = scope.spawn(move || finish_all::<H>(&there, &back));
        // The first batch is empty: when it is back the helper is awake.
        sending.send(Vec::with_capacity(BATCH as usize));
        let mut spare = vec![returned.next().expect("the helper sends everything back")];
        spare.resize_with(IN_FLIGHT, || Vec::with_capacity(BATCH as usize));
        take_sum();
        let start = Instant::now();
        open_and_collect::<H, _>(operations, |i| closure::<1>(black_box(i)), spare, &sending, &returned);
        let elapsed = start.elapsed();
        drop(sending);
        let told = take_sum() + helper.join().expect("completing does not panic");
        Lap { elapsed, told }
    })
}

fn open_and_collect<H: HandOver, F: Closure>(
    operations: u64,
    closure: impl Fn(u64) -> F,
    mut spare: Vec<Vec<H::Far>>,
    sending: &Sending<Vec<H::Far>>,
    returned: &Arriving<Vec<H::Far>>,
) {
    let mut opened = VecDeque::new();
    let collect = |spare: &mut Vec<_>, opened: &mut VecDeque<Vec<H::Near<F>>>| {
        spare.push(returned.next().expect("the helper sends everything back"));
        opened.pop_front().into_iter().flatten().for_each(H::collect);
    };
    for batch in 0..operations / BATCH {
        if spare.is_empty() {
            collect(&mut spare, &mut opened);
        }
        let mut fars = spare.pop().expect("one has just come back");
        let mut nears = Vec::with_capacity(BATCH as usize);
        for i in batch * BATCH..(batch + 1) * BATCH {
            let (near, far) = H::open(closure(i));
            nears.push(near);
            fars.push(far);
        }
        sending.send(fars);
        opened.push_back(nears);
    }
    while !opened.is_empty() {
        collect(&mut spare, &mut opened);
    }
}

fn finish_all<H: HandOver>(there: &Arriving<Vec<H::Far>>, back: &Sending<Vec<H::Far>>) -> u64 {
    take_sum();
    let mut value = 0;
    while let Some(mut batch) = there.next() {
        for far in batch.drain(..) {
            H::finish(far, value);
            value += 1;
        }
        back.send(batch);
    }
    take_sum()
}
