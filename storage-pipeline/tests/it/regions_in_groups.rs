//! Groups of replicas whose stores are split: each region elects, changes its members, stands still and goes on for itself,
//! and money that moves between regions is neither lost nor made.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{
    CommandError, Error, Outcome, Storage, Transaction, TransactionError,
    command::{Gc, RawCompareAndSwap, RawGet, RawPut},
    members::{MemberChange, Members},
    observe::{FailPoint, Moment},
    region::{RegionContext, RegionEpoch},
};

use crate::{
    group::{Group, in_every_mode_at_once},
    support::{Answer, PATIENCE, Tested, config, in_every_mode, wait_for},
};

const WITHIN: Duration = PATIENCE;

/// Three replicas, three regions: up to `h`, up to `p`, and the rest.
fn open(mode: storage_pipeline::CompletionMode) -> Group {
    let mut config = config(mode, "in-memory".as_ref());
    config.split_keys = vec![b"h".to_vec(), b"p".to_vec()];
    Group::with_config(config)
}

/// Changes the members of one region, on whoever leads it.
fn change(group: &Group, region: u64, changes: &[MemberChange]) -> Members {
    let until = Instant::now() + WITHIN;
    loop {
        if let Some(leader) = group.cluster.leader_of(region) {
            match leader.region(region).unwrap().change_members(changes) {
                Outcome::Applied(members) => return members,
                other => assert!(Instant::now() < until, "{changes:?}: {other:?}"),
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whoever leads a region, once one does.
fn leader_of(group: &Group, region: u64) -> Storage {
    group.cluster.wait_for_leaders(PATIENCE).expect("every region elects one")[region as usize - 1].clone()
}

/// Writes a key on whoever takes it. Says how long that took.
fn put(group: &Group, key: &str) -> Duration {
    let began = Instant::now();
    let taken = || group.cluster.replicas().any(|(_, each)| each.raw_put(key.as_bytes(), b"v").is_applied());
    while !taken() {
        assert!(began.elapsed() < WITHIN, "nobody takes {key}");
        thread::sleep(Duration::from_millis(1));
    }
    began.elapsed()
}

#[test]
fn a_region_without_a_quorum_or_a_leader_holds_up_no_other_and_its_members_are_its_own() {
    in_every_mode_at_once(|mode| {
        let group = open(mode);
        for key in ["a", "k", "z"] {
            put(&group, key);
        }
        // Replica 2 leaves the second region, and no other.
        group.cluster.wait_until_leads_all(1, WITHIN).expect("replica 1 can lead");
        assert_eq!(change(&group, 2, &[MemberChange::Remove(2)]).voters, [1, 3].into());
        for (region, voters) in [(1, 3), (2, 2), (3, 3)] {
            let leader = leader_of(&group, region);
            wait_for("the members of a region", || {
                leader.region(region).unwrap().members().unwrap().voters.len() == voters
            });
        }
        // Without replica 3 the second region lacks a majority of its two, and the others have one.
        let leader = group.cluster.wait_until_leads_all(1, WITHIN).expect("replica 1 can lead").clone();
        group.cluster.network().isolate(3);
        let stuck: Vec<_> = (0..20).map(|_| Answer::new()).collect();
        for (n, answer) in stuck.iter().enumerate() {
            let put = RawPut { key: format!("k-{n}").into(), value: b"v".to_vec() };
            leader.submit(put, answer.callback());
        }
        for n in 0..30 {
            put(&group, &format!("a-{n}"));
            put(&group, &format!("z-{n}"));
        }
        // It gives up in its time, and everybody there is told that nobody knows, or that nothing was done.
        stuck.iter().for_each(|answer| assert!(!answer.wait().is_applied()));
        wait_for("the end of its leadership", || {
            group
                .cluster
                .replicas()
                .filter(|(id, _)| *id != 3)
                .all(|(_, each)| matches!(each.raw_get(b"k"), Outcome::NotExecuted(Error::NotLeader { .. })))
        });
        let slowest =
            (0..30).map(|n| put(&group, &format!("b-{n}")).max(put(&group, &format!("y-{n}")))).max();
        eprintln!("{mode}: slowest write beside a region without a leader: {slowest:?}");
        group.cluster.network().heal();
        put(&group, "k-again");
        group.cluster.wait_for_leaders(WITHIN).expect("all three");
        assert!(group.on_disk(2, "k-again").is_none(), "replica 2 does not belong to it any more");
        group.finish();
    });
}

/// What a write, a read and one that reads before it writes come to in the second region, in this epoch, on whoever leads it.
fn in_epoch(group: &Group, epoch: RegionEpoch) -> [Outcome<()>; 3] {
    let named = RegionContext { id: 2, epoch: Some(epoch) };
    let key = || b"k".to_vec();
    let is_led = |outcome: &Outcome<()>| {
        let passes = |error: &Error| matches!(error, Error::NotLeader { .. } | Error::EpochPending { .. });
        !matches!(outcome, Outcome::NotExecuted(error) if passes(error))
    };
    loop {
        if let Some(leader) = group.cluster.leader_of(2) {
            let swap = RawCompareAndSwap { key: key(), previous: None, value: b"w".to_vec() };
            let outcomes = [
                leader.execute_in(named, RawPut { key: key(), value: b"v".to_vec() }).map(drop),
                leader.execute_in(named, RawGet { key: key() }).map(drop),
                leader.execute_in(named, swap).map(drop),
            ];
            if outcomes.iter().all(is_led) {
                return outcomes;
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// The second region takes what is for the epoch in which it is, and for no other.
fn check_epochs(group: &Group, current: RegionEpoch) {
    let RegionEpoch { conf_ver, version } = current;
    let changed = [(conf_ver - 1, version), (conf_ver + 1, version), (conf_ver, version + 1)];
    for (conf_ver, version) in changed {
        for outcome in in_epoch(group, RegionEpoch { conf_ver, version }) {
            let Outcome::NotExecuted(Error::EpochNotMatch(found)) = &outcome else { panic!("{outcome:?}") };
            assert_eq!((found.epoch, found.region.id), (current, 2));
            assert_eq!(
                (found.region.start_key.as_slice(), found.region.end_key.as_slice()),
                (&b"h"[..], &b"p"[..])
            );
        }
    }
    // Leaders may change under it.
    wait_for("a round in the current epoch", || in_epoch(group, current).iter().all(Outcome::is_applied));
}

#[test]
fn a_stale_epoch_is_refused_by_reads_and_writes_and_survives_restarts_and_snapshots() {
    in_every_mode_at_once(|mode| {
        let mut config = config(mode, "in-memory".as_ref());
        config.split_keys = vec![b"h".to_vec(), b"p".to_vec()];
        config.log_gc_entries = 10;
        config.log_gc_size_limit = 0;
        let mut group = Group::with_config(config);
        let first = RegionEpoch::default();
        put(&group, "k");
        // One that is away gets it with a snapshot later, and leads then.
        let has_at_most = group.cluster.replica(3).unwrap().region(2).unwrap().applied_index() + 100;
        group.lose_power(3);
        for (changes, conf_ver) in [([MemberChange::AddLearner(9)], 2), ([MemberChange::Remove(9)], 3)] {
            change(&group, 2, &changes);
            let leader = leader_of(&group, 2);
            wait_for("the change", || leader.region(2).unwrap().epoch().unwrap().conf_ver == conf_ver);
        }
        let current = RegionEpoch { conf_ver: 3, ..first };
        check_epochs(&group, current);
        // The others' epochs are their own.
        let other = leader_of(&group, 1);
        assert_eq!(other.region(1).unwrap().epoch(), Ok(first));
        let named = RegionContext { id: 4, epoch: None };
        let unknown = other.execute_in(named, RawGet { key: b"k".to_vec() });
        assert_eq!(unknown, Outcome::NotExecuted(Error::RegionNotFound { region: 4 }));
        drop(other);
        let forgotten = || {
            put(&group, "k-more");
            // By both of the others: either may lead.
            let is = |moment: &Moment| matches!(moment, Moment::Truncating { region: 2, index } if *index > has_at_most);
            let has_forgotten = |id| group.recorder(id).moments().iter().any(|(_, moment)| is(moment));
            has_forgotten(1) && has_forgotten(2)
        };
        wait_for("entries that replica 3 lacks to be forgotten", forgotten);
        group.cluster.start(3).unwrap();
        let has = || group.cluster.replica(3).unwrap().region(2).unwrap().epoch() == Ok(current);
        wait_for("the epoch at replica 3", has);
        let is_install = |moment: &Moment| matches!(moment, Moment::SnapshotInstalling { region: 2, .. });
        let installs = group.recorder(3).moments().iter().filter(|(_, moment)| is_install(moment)).count();
        assert!(installs > 0, "it came with a snapshot");
        group.cluster.wait_until_leads_all(3, WITHIN).expect("replica 3 can lead");
        check_epochs(&group, current);
        group.finish();
    });
}

#[test]
fn the_safe_point_of_every_region_rises_and_a_command_without_keys_names_its_region() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        config.split_keys = vec![b"h".to_vec(), b"p".to_vec()];
        let tested = Tested::open(config);
        let old = tested.storage.begin().into_result().unwrap();
        let gc = || Gc { safe_point: old.start_ts() + 1, keys: Vec::new() };
        assert_eq!(tested.storage.execute(gc()), Outcome::NotExecuted(Error::RegionNotNamed));
        for key in ["a", "k", "z"] {
            assert_eq!(old.get(key.as_bytes()), Ok(None));
        }
        let raised = tested.storage.raise_safe_point(old.start_ts() + 1);
        assert_eq!(raised, Outcome::Applied(old.start_ts() + 1));
        for key in ["a", "k", "z"] {
            let refused = old.get(key.as_bytes());
            assert!(matches!(refused, Err(CommandError::NotExecuted(Error::GcTooEarly { .. }))), "{key}");
        }
        let future = tested.storage.raise_safe_point(u64::MAX);
        assert!(matches!(future, Outcome::NotExecuted(Error::InvalidCommand(_))), "{future:?}");
        drop(old);
        tested.finish();
    });
}

#[test]
fn a_callback_that_blocks_the_raftstore_for_one_region_does_not_keep_anothers_entries_from_apply() {
    in_every_mode(|mode, dir| {
        let mut config = config(mode, dir);
        config.split_keys = vec![b"h".to_vec()];
        config.tick = Duration::from_secs(1);
        let tested = Tested::open(config);
        tested.observer.hold("LogWriting");
        let first = Answer::new();
        tested.storage.submit(RawPut { key: b"a".to_vec(), value: Vec::new() }, first.callback());
        tested.observer.wait_held("LogWriting");
        let before = applied(&tested.observer, 2);
        let (refused, observer) = (Answer::new(), Arc::clone(&tested.observer));
        let record = refused.callback();
        tested.observer.fail(FailPoint::RaftDropsProposal, 1);
        tested.storage.submit(RawPut { key: b"b".to_vec(), value: Vec::new() }, move |outcome| {
            let until = Instant::now() + WITHIN;
            while applied(&observer, 2) == before && Instant::now() < until {
                thread::sleep(Duration::from_millis(1));
            }
            assert!(applied(&observer, 2) > before, "the other region waits for this callback");
            record(outcome);
        });
        wait_for("the refused one at the raftstore", || tested.storage.in_flight().queued == 1);
        let second = Answer::new();
        tested.storage.submit(RawPut { key: b"i".to_vec(), value: Vec::new() }, second.callback());
        wait_for("both at the raftstore", || tested.storage.in_flight().queued == 2);
        tested.observer.let_go("LogWriting");
        assert!(refused.wait().is_not_executed());
        assert!(second.wait().is_applied() && first.wait().is_applied());
        tested.finish();
    });

    fn applied(observer: &crate::support::Recorder, of: u64) -> usize {
        let is = |moment: &Moment| matches!(moment, Moment::Applied { region, .. } if *region == of);
        observer.moments().iter().filter(|(_, moment)| is(moment)).count()
    }
}

const ACCOUNTS: [&str; 6] = ["a-1", "a-2", "k-1", "k-2", "z-1", "z-2"];
const COINS: i64 = 100;

fn balance(transaction: &Transaction, account: &str) -> Result<i64, CommandError> {
    let stored = transaction.get(account.as_bytes())?;
    Ok(stored.map_or(COINS, |coins| String::from_utf8(coins).unwrap().parse().unwrap()))
}

/// Moves a coin, or says that it was not moved, or that nobody knows.
fn transfer(storage: &Storage, n: u64) -> Result<(), TransactionError> {
    let [from, to] = [n, n / 6 + n + 1].map(|n| ACCOUNTS[n as usize % ACCOUNTS.len()]);
    if from == to {
        return Ok(());
    }
    let mut transaction = storage.begin().into_result().map_err(TransactionError::RolledBack)?;
    for (account, coins) in [(from, -1), (to, 1)] {
        let before = balance(&transaction, account).map_err(TransactionError::RolledBack)?;
        transaction.put(account.as_bytes(), (before + coins).to_string().as_bytes());
    }
    transaction.commit().map(drop)
}

/// A transaction over several regions needs a replica that leads them all, so somebody gathers the leaderships now and then.
/// In between they go wherever the next power loss or transfer sends them.
#[test]
fn no_coin_is_lost_or_made_between_regions_while_their_leaders_change_under_load() {
    in_every_mode_at_once(|mode| {
        let mut group = open(mode);
        group.cluster.wait_for_leaders(WITHIN).expect("all three");
        let (over, moved) = (AtomicBool::new(false), AtomicU64::new(0));
        let stores = std::sync::Mutex::new(Vec::<Storage>::new());
        let follow = |group: &Group| {
            *stores.lock().unwrap() = group.cluster.replicas().map(|(_, each)| each.clone()).collect();
        };
        follow(&group);
        thread::scope(|scope| {
            for writer in 0..3 {
                let (over, moved, stores) = (&over, &moved, &stores);
                scope.spawn(move || {
                    for n in (writer..).step_by(3) {
                        if over.load(Ordering::Relaxed) {
                            return;
                        }
                        let storage = {
                            let stores = stores.lock().unwrap();
                            stores[n as usize / 3 % stores.len()].clone()
                        };
                        if transfer(&storage, n).is_ok() {
                            moved.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            for round in 1..=3 {
                let gathered = group.cluster.wait_until_leads_all(round, WITHIN).is_some();
                let before = moved.load(Ordering::Relaxed);
                wait_for("coins that move", || !gathered || moved.load(Ordering::Relaxed) > before + 15);
                // The regions' leaders part.
                if let Some(led) = group.cluster.leader_of(2).and_then(|leader| leader.region(2)) {
                    led.transfer_leader(round % 3 + 1);
                }
                group.lose_power(round);
                follow(&group);
                group.cluster.wait_for_leaders(WITHIN).expect("two of three can elect them");
                group.cluster.start(round).unwrap();
                follow(&group);
            }
            over.store(true, Ordering::Relaxed);
        });
        stores.into_inner().unwrap().clear();
        let until = Instant::now() + WITHIN;
        let total = loop {
            let reader = group.cluster.wait_until_leads_all(1, WITHIN).expect("replica 1 can lead");
            let total = reader.begin().into_result().and_then(|transaction| {
                ACCOUNTS.iter().map(|account| balance(&transaction, account)).sum::<Result<i64, _>>()
            });
            match total {
                Ok(total) => break total,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        };
        assert_eq!(total, COINS * ACCOUNTS.len() as i64);
        group.finish();
    });
}
