//! Replicas that need entries which the log has forgotten: they get a snapshot, whatever happens to it on its way.

use std::{thread, time::Duration};

use storage_pipeline::{CompletionMode, Storage, raftstore::status::Role, storage::Network};

use crate::{
    group::{Group, in_every_mode_at_once, in_every_mode_steadily},
    support::{TICK, config, wait_for, with_more_time},
};

fn id(storage: &Storage) -> u64 {
    storage.status().replica
}

/// A group that soon forgets the entries of replicas that are not heard, or of all where `size_limit` is small.
fn forgetful(mode: CompletionMode, tick: Duration, size_limit: u64) -> Group {
    let mut config = config(mode, "in-memory".as_ref());
    config.tick = tick;
    config.log_gc_entries = 10;
    config.log_gc_size_limit = size_limit;
    Group::with_config(config)
}

/// Cuts a follower off while the others write and forget what it needs; says which one. Keys `gone-*` were deleted
/// meanwhile, `kept-*` written, with enough bytes for several chunks.
fn leave_behind(group: &Group) -> u64 {
    for n in 0..10 {
        group.write_until_applied(&format!("gone-{n}"));
    }
    group.agree();
    let follower = group.others(id(&group.leader()))[0];
    group.cluster.network().isolate(follower);
    let has = group.cluster.replica(follower).unwrap().applied_index();
    let truncated_to = || group.recorder(id(&group.other_leader(follower))).truncated_to();
    for n in 0.. {
        if n >= 40 && truncated_to() > has + 10 {
            break;
        }
        assert!(n < 2000, "the log is never truncated");
        let key = format!("kept-{}", n % 40);
        group.ask(follower, |leader| leader.raw_put(key.as_bytes(), &vec![b'v'; 16 << 10]));
        if n < 10 {
            group.ask(follower, |leader| leader.raw_delete(format!("gone-{n}").as_bytes()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    follower
}

fn check_data(group: &Group, replica: u64) {
    for n in 0..10 {
        assert_eq!(group.on_disk(replica, &format!("gone-{n}")), None, "replica {replica}");
    }
    for n in 0..40 {
        let value = group.on_disk(replica, &format!("kept-{n}"));
        assert_eq!(value.map(|value| value.len()), Some(16 << 10), "kept-{n} of replica {replica}");
    }
}

#[test]
fn a_follower_that_was_cut_off_while_the_log_was_compacted_heals_through_a_snapshot() {
    in_every_mode_at_once(|mode| {
        let mut group = forgetful(mode, TICK, 64 << 20);
        let follower = leave_behind(&group);
        group.cluster.network().heal();
        group.agree();
        assert!(group.recorder(follower).count("SnapshotInstalling") >= 1);
        check_data(&group, follower);
        // What it got is durable, and it goes on from there.
        group.lose_power(follower);
        group.write_until_applied("meanwhile");
        group.cluster.start(follower).unwrap();
        group.agree();
        check_data(&group, follower);
        // It can lead.
        wait_for("the transfer", || {
            group.leader().transfer_leader(follower);
            thread::sleep(Duration::from_millis(20));
            group.cluster.replica(follower).unwrap().status().role == Role::Leader
        });
        group.agree();
        for replica in 1..=3 {
            check_data(&group, replica);
        }
        group.finish();
    });
}

#[test]
fn a_replica_that_lags_by_more_than_the_bound_gets_a_snapshot_though_it_is_heard() {
    in_every_mode_steadily(|mode, tick| {
        let group = forgetful(mode, tick, 1);
        let leader = group.leader();
        let term = leader.status().term;
        let follower = group.others(id(&leader))[0];
        // It answers, and what it is sent never comes.
        group.cluster.network().cut(id(&leader), follower);
        let has = group.cluster.replica(follower).unwrap().applied_index();
        for n in 0..2000 {
            if group.recorder(id(&leader)).truncated_to() > has + 10 {
                break;
            }
            group.write_until_applied(&format!("k{}", n % 10));
        }
        let is_same = leader.status().term == term;
        group.cluster.network().heal();
        group.agree();
        let installs = group.recorder(follower).count("SnapshotInstalling");
        group.finish();
        assert!(installs >= 1 || !is_same);
        is_same.then_some(())
    });
}

#[test]
fn a_crash_in_the_middle_of_an_install_is_made_up_for_by_the_next_start() {
    in_every_mode_at_once(|mode| {
        let mut group = forgetful(mode, TICK, 64 << 20);
        let follower = leave_behind(&group);
        let recorder = group.recorder(follower);
        recorder.panic_at("SnapshotInstalling");
        group.cluster.network().heal();
        let fault = || group.cluster.replica(follower).unwrap().fault();
        wait_for("the panic", || fault().is_some());
        group.lose_power(follower);
        group.cluster.start(follower).unwrap();
        // The start has done it: no other replica was heard.
        check_data(&group, follower);
        group.agree();
        check_data(&group, follower);
        group.finish();
    });
}

#[test]
fn snapshots_of_which_chunks_are_lost_are_taken_again() {
    let is_cut_in_time = |mode, delay: Duration| {
        let group = forgetful(mode, TICK, 64 << 20);
        let follower = leave_behind(&group);
        let others = group.others(follower);
        let on_links = |set: &dyn Fn(&Network, u64)| {
            others.iter().for_each(|other| set(group.cluster.network(), *other))
        };
        let sent =
            || others.iter().map(|other| group.recorder(*other).count("SnapshotSending")).sum::<usize>();
        // Each of some chunks takes its time; the link is cut among them.
        group.cluster.network().heal();
        on_links(&|network, other| network.delay(other, follower, delay));
        wait_for("the first chunks", || sent() >= 1);
        on_links(&|network, other| network.cut(other, follower));
        thread::sleep(delay * 2);
        let installs = || group.recorder(follower).count("SnapshotInstalling");
        let is_in_time = installs() == 0;
        group.cluster.network().heal();
        group.agree();
        assert!(installs() >= 1);
        check_data(&group, follower);
        group.finish();
        is_in_time.then_some(())
    };
    in_every_mode_at_once(|mode| {
        with_more_time(Duration::from_millis(40), |delay| is_cut_in_time(mode, delay));
    });
}
