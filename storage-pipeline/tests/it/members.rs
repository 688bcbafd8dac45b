//! Changes of members under load: replicas join, are promoted, leave, several at once, and the one that leads too.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use storage_pipeline::{
    Error, Outcome, Storage,
    members::{MemberChange, MemberChangeRefused, Members},
};

use crate::{
    group::{Group, in_every_mode_at_once, in_every_mode_steadily, is_deposed},
    support::{PATIENCE, config, wait_for},
};

fn id(storage: &Storage) -> u64 {
    storage.status().replica
}

/// Asks whoever leads, until it is done. A leader that has lost its place does not know what came of it, and the next one
/// says so where it was done.
fn change(group: &Group, changes: &[MemberChange]) -> Members {
    let until = Instant::now() + PATIENCE;
    loop {
        let leader = group.leader();
        match leader.change_members(changes) {
            Outcome::Applied(members) => return members,
            Outcome::NotExecuted(Error::MemberChange(
                MemberChangeRefused::AlreadyThere { .. } | MemberChangeRefused::Unknown { .. },
            )) => return leader.members().unwrap(),
            other => assert!(Instant::now() < until, "{changes:?}: {other:?}"),
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Writes keys on whoever leads for as long as `run` takes. Says which of them were acknowledged.
fn under_load<R>(group: &mut Group, run: impl FnOnce(&mut Group) -> R) -> (R, Vec<String>) {
    let (over, next) = (AtomicBool::new(false), AtomicU64::new(0));
    // Replicas come and go, so the writers ask those that were there at the start, and the newest leader's hint.
    let stores: Vec<Storage> = group.cluster.replicas().map(|(_, storage)| storage.clone()).collect();
    thread::scope(|scope| {
        let writers = [0, 1].map(|_| {
            let (over, next, stores) = (&over, &next, &stores);
            scope.spawn(move || {
                let mut acknowledged = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let key = format!("load-{n}");
                    if stores[n as usize % stores.len()].raw_put(key.as_bytes(), b"v").is_applied() {
                        acknowledged.push(key);
                    }
                }
                acknowledged
            })
        });
        let result = run(group);
        over.store(true, Ordering::Relaxed);
        let acknowledged = writers.map(|writer| writer.join().unwrap());
        (result, acknowledged.concat())
    })
}

fn set(ids: &[u64]) -> BTreeSet<u64> {
    ids.iter().copied().collect()
}

fn check(group: &Group, replica: u64, keys: &[String]) {
    for key in keys {
        assert_eq!(group.on_disk(replica, key).as_deref(), Some(&b"v"[..]), "{key} of replica {replica}");
    }
}

#[test]
fn a_replica_joins_as_a_learner_through_a_snapshot_is_promoted_and_leads() {
    in_every_mode_at_once(|mode| {
        let mut config = config(mode, "in-memory".as_ref());
        config.log_gc_entries = 10;
        let mut group = Group::with_config(config);
        for n in 0..60 {
            group.write_until_applied(&format!("before-{n}"));
        }
        wait_for("a truncated log", || group.recorder(id(&group.leader())).truncated_to() > 10);
        group.cluster.start(4).unwrap();
        let ((), keys) = under_load(&mut group, |group| {
            let members = change(group, &[MemberChange::AddLearner(4)]);
            assert_eq!((members.voters, members.learners), (set(&[1, 2, 3]), set(&[4])));
            wait_for("the snapshot", || group.recorder(4).count("SnapshotInstalling") >= 1);
            assert_eq!(change(group, &[MemberChange::AddVoter(4)]).voters, set(&[1, 2, 3, 4]));
        });
        group.agree();
        check(&group, 4, &keys);
        // It can lead.
        wait_for("the transfer", || {
            group.leader().transfer_leader(4);
            thread::sleep(Duration::from_millis(20));
            id(&group.leader()) == 4
        });
        group.agree();
        for (id, storage) in group.cluster.replicas() {
            assert_eq!(storage.members().unwrap().voters, set(&[1, 2, 3, 4]), "replica {id}");
        }
        // The membership outlives its replicas.
        for replica in 1..=4 {
            group.lose_power(replica);
        }
        for replica in 1..=4 {
            group.cluster.start(replica).unwrap();
        }
        group.agree();
        assert_eq!(group.leader().members().unwrap().voters, set(&[1, 2, 3, 4]));
        group.finish();
    });
}

#[test]
fn a_leader_removes_itself_under_load_and_disturbs_nobody_afterwards() {
    in_every_mode_steadily(|mode, tick| {
        let mut group = Group::with_tick(mode, tick);
        let old = id(&group.leader());
        let (members, keys) = under_load(&mut group, |group| change(group, &[MemberChange::Remove(old)]));
        assert!(!members.voters.contains(&old) && members.voters.len() == 2, "{members:?}");
        let term = group.other_leader(old).status().term;
        group.write_until_applied("afterwards");
        thread::sleep(group.election_timeout() * 4);
        let leader = group.leader();
        let nobody_was_elected = leader.status().term == term;
        assert_ne!(id(&leader), old);
        assert!(matches!(
            group.cluster.replica(old).unwrap().raw_put(b"k", b"v"),
            Outcome::NotExecuted(Error::NotLeader { .. })
        ));
        group.cluster.stop(old);
        group.agree();
        for replica in group.others(old) {
            check(&group, replica, &keys);
        }
        group.finish();
        nobody_was_elected.then_some(())
    });
}

#[test]
fn who_votes_no_more_may_be_switched_off_as_soon_as_that_is_told() {
    in_every_mode_steadily(|mode, tick| {
        let mut group = Group::with_tick(mode, tick);
        group.write_until_applied("before");
        for voters in [2, 1] {
            let leader = group.cluster.wait_for_leader(PATIENCE)?.clone();
            let leaves = id(&leader);
            // What the leader has yet to say arrives when nobody hears it.
            for other in group.others(leaves) {
                group.cluster.network().delay(leaves, other, tick * 2);
            }
            let outcome = leader.change_members(&[MemberChange::Remove(leaves)]);
            drop(leader);
            group.cluster.stop(leaves);
            // Without a promise nothing is to be had.
            let members = outcome.into_result().ok()?;
            assert_eq!(members.voters.len(), voters, "{members:?}");
            members.voters.iter().for_each(|stays| group.lose_power(*stays));
            group.cluster.network().heal();
            thread::sleep(tick * 2);
            members.voters.iter().for_each(|stays| group.cluster.start(*stays).unwrap());
            group.write_until_applied("afterwards");
        }
        let last = group.write_until_applied("at last").0;
        check(&group, last, &["before".to_owned(), "afterwards".to_owned()]);
        group.finish();
        Some(())
    });
}

#[test]
fn a_replica_that_does_not_hear_of_its_removal_disturbs_nobody() {
    in_every_mode_steadily(|mode, tick| {
        let mut group = Group::with_tick(mode, tick);
        let leader = group.leader();
        let gone = group.others(id(&leader))[0];
        group.cluster.network().isolate(gone);
        assert_eq!(change(&group, &[MemberChange::Remove(gone)]).voters.len(), 2);
        let leader = group.leader();
        thread::sleep(group.election_timeout() * 2);
        let status = leader.status();
        group.cluster.network().heal();
        thread::sleep(group.election_timeout() * 4);
        // It asked for votes, and nobody listened.
        let leads_on = leader.status() == status;
        group.write_until_applied("afterwards");
        group.cluster.stop(gone);
        group.agree();
        drop(leader);
        group.finish();
        leads_on.then_some(())
    });
}

#[test]
fn several_replicas_change_places_at_once_under_load() {
    in_every_mode_at_once(|mode| {
        let mut group = Group::open(mode);
        for replica in [4, 5] {
            group.cluster.start(replica).unwrap();
        }
        let ((), keys) = under_load(&mut group, |group| {
            change(group, &[MemberChange::AddLearner(4), MemberChange::AddLearner(5)]);
            let members = change(
                group,
                &[MemberChange::AddVoter(4), MemberChange::AddVoter(5), MemberChange::Remove(1)],
            );
            assert_eq!(members, Members { voters: set(&[2, 3, 4, 5]), ..Members::default() });
        });
        group.cluster.stop(1);
        group.agree();
        for replica in 2..=5 {
            check(&group, replica, &keys);
            assert_eq!(group.cluster.replica(replica).unwrap().members().unwrap().voters, set(&[2, 3, 4, 5]));
        }
        // Nothing was synced, so the log is applied again from its first entry, to data that has the last membership.
        for replica in 2..=5 {
            group.kill(replica);
        }
        for replica in 2..=5 {
            group.cluster.start(replica).unwrap();
        }
        group.agree();
        assert_eq!(change(&group, &[MemberChange::Remove(2)]).voters, set(&[3, 4, 5]));
        group.cluster.stop(2);
        group.agree();
        group.finish();
    });
}

#[test]
fn a_change_that_cannot_be_is_refused_and_changes_nothing() {
    in_every_mode_steadily(|mode, tick| {
        let group = Group::with_tick(mode, tick);
        group.agree();
        let leader = group.leader();
        let refused = |why| Outcome::NotExecuted(Error::MemberChange(why));
        for (changes, why) in [
            (vec![], MemberChangeRefused::Nothing),
            (vec![MemberChange::AddVoter(0)], MemberChangeRefused::ZeroId),
            (vec![MemberChange::Remove(7)], MemberChangeRefused::Unknown { replica: 7 }),
            (vec![MemberChange::AddVoter(1)], MemberChangeRefused::AlreadyThere { replica: 1 }),
            ((1..=3).map(MemberChange::Remove).collect(), MemberChangeRefused::NoVoterLeft),
        ] {
            let outcome = leader.change_members(&changes);
            if is_deposed(&outcome) {
                group.finish();
                return None;
            }
            assert_eq!(outcome, refused(why));
        }
        let follower = group.cluster.replica(group.others(id(&leader))[0]).unwrap();
        assert!(matches!(
            follower.change_members(&[MemberChange::AddLearner(4)]),
            Outcome::NotExecuted(Error::NotLeader { .. })
        ));
        assert_eq!(leader.members().unwrap(), Members { voters: set(&[1, 2, 3]), ..Members::default() });
        leader.close();
        let closed = leader.change_members(&[MemberChange::AddLearner(4)]);
        assert_eq!(closed, Outcome::NotExecuted(Error::Closed));
        group.finish();
        Some(())
    });
}

#[test]
fn a_store_that_is_alone_stays_alone() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::open(storage_pipeline::Config::new(dir.path())).unwrap();
    let refused = storage.change_members(&[MemberChange::AddVoter(2)]);
    assert_eq!(refused, Outcome::NotExecuted(Error::MemberChange(MemberChangeRefused::Alone)));
    assert_eq!(storage.members().unwrap().voters, set(&[1]));
}
