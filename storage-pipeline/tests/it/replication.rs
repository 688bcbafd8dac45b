//! Several replicas: what is acknowledged survives the loss of a leader, and whoever loses the leadership answers
//! everybody. All five modes run at once, since these tests mostly wait for elections.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{
    Cause, Error, Outcome, Storage,
    command::{RawGet, RawPut},
    raftstore::status::Role,
};

use crate::{
    group::{Group, in_every_mode_at_once, in_every_mode_steadily, is_deposed},
    support::{Answer, PATIENCE, checked, wait_for},
};

fn put(key: &str, value: &str) -> RawPut {
    RawPut { key: key.into(), value: value.into() }
}

fn id(storage: &Storage) -> u64 {
    storage.status().replica
}

#[test]
fn what_the_leader_acknowledges_reaches_every_replica_and_the_others_name_the_leader() {
    in_every_mode_steadily(|mode, tick| {
        let group = Group::with_tick(mode, tick);
        let leader = group.leader();
        let term = leader.status().term;
        let written: Vec<_> = (0..20).map(|n| leader.execute(put(&format!("k{n}"), "v"))).collect();
        let applied = leader.applied_index();
        let mut hints = Vec::new();
        for other in group.others(id(&leader)) {
            let follower = group.cluster.replica(other).unwrap();
            wait_for("replication", || follower.applied_index() >= applied);
            wait_for("the hint", || follower.status().leader.is_some());
            hints.push((follower.raw_put(b"k", b"v"), follower.raw_get(b"k")));
        }
        if group.cluster.replicas().any(|(_, storage)| storage.status().term != term) {
            group.finish();
            return None;
        }
        assert!(written.iter().all(Outcome::is_applied), "{written:?}");
        let hint = Error::NotLeader { leader: Some(id(&leader)) };
        let refused = (Outcome::NotExecuted(hint.clone()), Outcome::NotExecuted(hint));
        assert_eq!(hints, [refused.clone(), refused]);
        for (replica, _) in group.cluster.replicas() {
            assert_eq!(group.on_disk(replica, "k19").as_deref(), Some(&b"v"[..]));
        }
        group.finish();
        Some(())
    });
}

#[test]
fn an_isolated_leader_steps_down_answers_everybody_and_frees_its_latches() {
    in_every_mode_at_once(|mode| {
        let group = Group::open(mode);
        let (old, ()) = group.ask(0, |leader| leader.raw_put(b"k", b"before"));
        group.cluster.network().isolate(id(&old));
        let proposed = group.recorder(id(&old)).count("Proposed");
        // The first of each kind of key is proposed and stays in doubt; the others wait for its latch.
        let answers: Vec<_> = (0..22).map(|_| Answer::new()).collect();
        answers[..11].iter().for_each(|answer| old.submit(put("k", "lost"), answer.callback()));
        answers[11..].iter().for_each(|answer| old.submit(checked("k"), answer.callback()));
        let read = Answer::new();
        old.submit(RawGet { key: b"k".to_vec() }, read.callback());

        let outcomes: Vec<_> = answers.iter().map(Answer::wait).collect();
        let in_doubt = outcomes.iter().filter(|it| **it == Outcome::Indeterminate(Cause::LeadershipLost));
        let refused =
            outcomes.iter().filter(|it| matches!(it, Outcome::NotExecuted(Error::NotLeader { .. })));
        let proposed = group.recorder(id(&old)).count("Proposed") - proposed;
        assert!(proposed <= 2, "waiters are not proposed");
        assert_eq!((in_doubt.count(), refused.count()), (proposed, 22 - proposed), "{outcomes:?}");
        let read = read.wait();
        let is_old = read == Outcome::Applied(Some(b"before".to_vec()));
        assert!(is_old || matches!(read, Outcome::NotExecuted(Error::NotLeader { .. })), "{read:?}");
        wait_for("quiescence", || old.in_flight().is_quiescent());

        // Ten timeouts on, every command is still answered, and not because its own time was up.
        thread::sleep(group.election_timeout() * 10);
        assert!(matches!(old.execute(checked("k")), Outcome::NotExecuted(Error::NotLeader { .. })));
        assert!(matches!(old.raw_put(b"k", b"v"), Outcome::NotExecuted(Error::NotLeader { .. })));

        let (_, value) = group.ask(id(&old), |new| new.raw_get(b"k"));
        assert_eq!(value, Some(b"before".to_vec()));
        let (new, ()) = group.ask(id(&old), |new| new.raw_put(b"k", b"after"));
        group.cluster.network().heal();
        wait_for("the healed replica", || old.applied_index() >= new.applied_index());
        assert_eq!(
            group.on_disk(id(&old), "k").as_deref(),
            Some(&b"after"[..]),
            "overwritten by the new leader"
        );
        group.finish();
    });
}

#[test]
fn a_write_in_doubt_is_told_so_whether_it_was_replicated_or_not_and_the_group_agrees_on_its_fate() {
    let is_fate_known = |mode, tick, replicated| {
        let group = Group::with_tick(mode, tick);
        let old = group.leader();
        for follower in group.others(id(&old)) {
            // Entries leave and nobody's answer comes back, or the other way round.
            let (from, to) = if replicated { (follower, id(&old)) } else { (id(&old), follower) };
            group.cluster.network().cut(from, to);
        }
        let doubtful = Answer::new();
        old.submit(put("k", "doubtful"), doubtful.callback());
        if doubtful.wait().is_not_executed() {
            assert!(is_deposed(&doubtful.wait()), "{:?}", doubtful.wait());
            group.cluster.network().heal();
            group.finish();
            return None;
        }
        assert_eq!(doubtful.wait(), Outcome::Indeterminate(Cause::LeadershipLost));
        wait_for("stepping down", || old.status().role != Role::Leader);
        group.cluster.network().heal();
        group.write_until_applied("other");
        let (_, value) = group.ask(0, |leader| leader.raw_get(b"k"));
        assert_eq!(value.is_some(), replicated);
        group.agree();
        for (replica, _) in group.cluster.replicas() {
            assert_eq!(group.on_disk(replica, "k"), value, "replica {replica}");
        }
        group.finish();
        Some(())
    };
    for replicated in [true, false] {
        in_every_mode_steadily(|mode, tick| is_fate_known(mode, tick, replicated));
    }
}

#[test]
fn no_acknowledged_write_is_lost_while_leaders_come_and_go_under_load() {
    in_every_mode_at_once(|mode| {
        let group = Group::open(mode);
        let stop = AtomicBool::new(false);
        // Each writer owns its keys and counts them up, so the value says which write was last.
        let acknowledged: Mutex<BTreeMap<String, u64>> = Mutex::default();
        let tried: Mutex<BTreeMap<String, u64>> = Mutex::default();
        let count = AtomicU64::new(0);
        thread::scope(|scope| {
            for writer in 0..3 {
                let (group, stop, acknowledged, tried, count) =
                    (&group, &stop, &acknowledged, &tried, &count);
                scope.spawn(move || {
                    for n in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let key = format!("{writer}-{}", n % 3);
                        tried.lock().unwrap().insert(key.clone(), n);
                        let Some(leader) = group.cluster.leader() else {
                            thread::sleep(Duration::from_millis(2));
                            continue;
                        };
                        let sent = Instant::now();
                        let outcome =
                            leader.execute_within(put(&key, &n.to_string()), Duration::from_secs(3));
                        assert!(sent.elapsed() < PATIENCE, "answered by its deadline");
                        match outcome {
                            Outcome::Applied(()) => {
                                acknowledged.lock().unwrap().insert(key, n);
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                            Outcome::NotExecuted(_) => thread::sleep(Duration::from_millis(2)),
                            Outcome::Indeterminate(_) => {}
                        }
                    }
                });
            }
            for _ in 0..2 {
                let before = count.load(Ordering::Relaxed);
                wait_for("writes", || count.load(Ordering::Relaxed) > before + 10);
                let old = group.leader();
                group.cluster.network().isolate(id(&old));
                let new = group.other_leader(id(&old));
                assert!(new.status().term > 0);
                let before = count.load(Ordering::Relaxed);
                wait_for("writes without it", || count.load(Ordering::Relaxed) > before + 10);
                group.cluster.network().heal();
            }
            stop.store(true, Ordering::Relaxed);
        });
        group.agree();
        let tried = tried.into_inner().unwrap();
        for (key, last) in acknowledged.into_inner().unwrap() {
            for (replica, _) in group.cluster.replicas() {
                let value = group.on_disk(replica, &key).expect("it was acknowledged");
                let value: u64 = String::from_utf8(value).unwrap().parse().unwrap();
                assert!(value >= last && value <= tried[&key], "{key}: {value}, acknowledged {last}");
            }
        }
        group.finish();
    });
}

#[test]
fn after_a_transfer_the_old_leader_never_reads_what_a_later_write_has_changed() {
    in_every_mode_at_once(|mode| {
        let group = Group::open(mode);
        let (old, ()) = group.ask(0, |leader| leader.raw_put(b"k", b"1"));
        let successor = group.others(id(&old))[0];
        // One whose log is complete is told to take over at once.
        let log_end = old.applied_index();
        wait_for("replication", || group.cluster.replica(successor).unwrap().applied_index() >= log_end);
        let read_on = AtomicBool::new(true);
        let written = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while read_on.load(Ordering::Relaxed) {
                    let known = written.load(Ordering::SeqCst);
                    let read = old.raw_get(b"k");
                    assert!(!known || read != Outcome::Applied(Some(b"1".to_vec())), "a read of the past");
                }
            });
            // The old one never hears what comes of it.
            group.others(id(&old)).iter().for_each(|other| group.cluster.network().cut(*other, id(&old)));
            old.transfer_leader(successor);
            // The successor, or on a machine with other things to do whoever is elected.
            group.ask(id(&old), |new| new.raw_put(b"k", b"2"));
            written.store(true, Ordering::SeqCst);
            thread::sleep(group.election_timeout());
            read_on.store(false, Ordering::Relaxed);
        });
        group.cluster.network().heal();
        group.finish();
    });
}

#[test]
fn a_replica_that_lost_power_catches_up_and_slow_links_only_slow_the_group_down() {
    in_every_mode_at_once(|mode| {
        let mut group = Group::open(mode);
        let leader = id(&group.leader());
        let follower = group.others(leader)[0];
        group.write_until_applied("a");
        group.lose_power(follower);
        group.write_until_applied("b");
        group.cluster.start(follower).unwrap();
        for other in group.others(leader) {
            group.cluster.network().delay(leader, other, Duration::from_millis(5));
        }
        group.write_until_applied("c");
        group.cluster.network().heal();
        group.agree();
        for key in ["a", "b", "c"] {
            assert!(group.on_disk(follower, key).is_some(), "{key}");
        }
        group.finish();
    });
}

#[test]
fn timestamps_rise_over_a_change_of_leaders_and_a_deposed_one_gives_none() {
    in_every_mode_at_once(|mode| {
        let group = Group::open(mode);
        let mut last = 0;
        for _ in 0..2 {
            let next = |not| group.ask(not, Storage::timestamp);
            for _ in 0..50 {
                let (_, timestamp) = next(0);
                assert!(timestamp > last, "{timestamp} after {last}");
                last = timestamp;
            }
            let old = group.leader();
            group.cluster.network().isolate(id(&old));
            for _ in 0..50 {
                let (_, timestamp) = next(id(&old));
                assert!(timestamp > last, "{timestamp} after {last}");
                last = timestamp;
                // Its window is not used up, but it is no longer its to give.
                if let Outcome::Applied(late) = old.timestamp() {
                    panic!("the deposed leader gave out {late} after {last}");
                }
            }
            group.cluster.network().heal();
            group.agree();
        }
        group.finish();
    });
}

#[test]
fn a_group_without_a_quorum_closes_and_answers() {
    in_every_mode_at_once(|mode| {
        let mut group = Group::open(mode);
        let leader = group.leader();
        for other in group.others(id(&leader)) {
            group.cluster.stop(other);
        }
        let answers: Vec<_> = (0..5).map(|_| Answer::new()).collect();
        for (n, answer) in answers.iter().enumerate() {
            leader.submit(put(&format!("k{n}"), "v"), answer.callback());
        }
        leader.close();
        for answer in &answers {
            let outcome = answer.wait();
            assert!(!outcome.is_applied(), "{outcome:?}");
        }
        group.finish();
    });
}
