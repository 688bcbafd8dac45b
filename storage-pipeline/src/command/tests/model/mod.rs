//! Random interleavings of transactions against a model of snapshot isolation: clients that stop half-way, others
//! that resolve what they left, garbage collection, and messages that arrive again, long after.
//!
//! | property | where |
//! |---|---|
//! | a transaction has one fate, and all its keys share it | `decide`, `Run::read_all` |
//! | a read sees, of each key, the newest version committed at or before its timestamp | `Run::read_all` |
//! | no two transactions that overlap and write one key both commit | `Run::check_writers` |
//! | a repeated command says the same and changes nothing | `testing::Store` |
//! | nothing is left behind: no long value without a record | `Run::check_values` |

use proptest::prelude::*;

mod run;
mod messages;
mod checks;

use run::Run;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const TTL_MS: u64 = 60;

/// One step of somebody. Numbers choose among what exists, by remainder.
#[derive(Clone, Debug)]
enum Step {
    /// A new transaction; of each key, what it does to it, and how many keys it prewrites at once.
    Begin {
        kinds: [u8; 4],
        batch: usize,
    },
    /// The client of a transaction goes on: the next prewrite, a commit timestamp, the commit of the primary key, or
    /// that of the others.
    Advance {
        txn: usize,
    },
    /// The client gives up.
    GiveUp {
        txn: usize,
    },
    /// Somebody cleans up a transaction's primary key by force, or asks it for its fate.
    Cleanup {
        txn: usize,
    },
    Check {
        txn: usize,
        push: bool,
        roll_back: bool,
    },
    HeartBeat {
        txn: usize,
    },
    /// Somebody reads everything, so many timestamps ago, and resolves or passes what is in the way.
    Read {
        ago: u64,
        reverse: bool,
    },
    /// Everything below some timestamp is resolved and collected.
    Gc {
        ago: u64,
    },
    /// A command that was sent before arrives again.
    Repeat {
        sent: usize,
    },
    /// Time passes.
    Wait {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let txn = || 0usize..5;
    prop_oneof![
        5 => (any::<[u8; 4]>(), 1usize..4).prop_map(|(kinds, batch)| Step::Begin { kinds, batch }),
        30 => txn().prop_map(|txn| Step::Advance { txn }),
        1 => txn().prop_map(|txn| Step::GiveUp { txn }),
        1 => txn().prop_map(|txn| Step::Cleanup { txn }),
        2 => (txn(), any::<bool>(), any::<bool>())
            .prop_map(|(txn, push, roll_back)| Step::Check { txn, push, roll_back }),
        1 => txn().prop_map(|txn| Step::HeartBeat { txn }),
        4 => (0u64..40, any::<bool>()).prop_map(|(ago, reverse)| Step::Read { ago, reverse }),
        1 => (0u64..40).prop_map(|ago| Step::Gc { ago }),
        5 => any::<usize>().prop_map(|sent| Step::Repeat { sent }),
        4 => (1u64..50).prop_map(|ms| Step::Wait { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_interleaving_is_snapshot_isolation(steps in proptest::collection::vec(step(), 1..160)) {
        let mut run = Run::default();
        for step in &steps {
            run.step(step);
            run.check_values();
        }
        run.finish();
        prop_assert!(run.compared > 0);
    }
}
