//! Groups of nodes over sockets: they lose nothing and no history is wrong, whoever is stopped and whatever link is cut.

use std::{thread, time::Duration};

use storage_pipeline::{CompletionMode, Error, Outcome};

use super::{
    link::Mode,
    load::Load,
    nodes::{NODES, Nodes},
};
use crate::support::{wait_for, with_more_time};

#[test]
fn each_node_is_stopped_in_turn_under_load_and_comes_back_and_nothing_is_lost() {
    for mode in CompletionMode::ALL {
        let mut nodes = Nodes::start(mode);
        let load = Load::on(nodes.storages());
        load.run(3, || {
            for id in NODES {
                load.wait_for_commands("commands");
                // A leader is the harder case.
                nodes.make_leader(id);
                nodes.stop_node(id);
                load.follow(nodes.storages());
                load.wait_for_commands("commands without a node");
                nodes.start_node(id);
                load.follow(nodes.storages());
            }
            load.wait_for_commands("commands of all");
        });
        nodes.put(b"last", b"v");
        nodes.agree();
        nodes.finish();
        assert!(load.history.check() > 100);
    }
}

#[test]
fn a_leader_that_is_cut_off_gives_way_and_its_callers_hear_of_it() {
    for mode in CompletionMode::ALL {
        // A cut that says nothing, as of a network that loses everything, and one that hangs up. What the wire does knows no
        // modes: one of them is enough for both.
        let cuts = [Mode::Silent, Mode::HungUp];
        for cut in if mode == CompletionMode::default() { &cuts[..] } else { &cuts[..1] } {
            let nodes = Nodes::start(mode);
            let load = Load::on(nodes.storages());
            load.run(3, || {
                let old = nodes.leader();
                load.wait_for_commands("commands");
                nodes.cut(old, *cut);
                let new = nodes.other_leader(old);
                load.wait_for_commands("commands without the old leader");
                // It steps down by itself, since it hears no quorum.
                let refuses = || {
                    let outcome = nodes.storage(old).raw_get(b"key-0");
                    matches!(outcome, Outcome::NotExecuted(Error::NotLeader { .. }))
                };
                wait_for("the old leader to refuse", refuses);
                nodes.heal();
                wait_for("the old leader to follow", || nodes.storage(old).status().leader.is_some());
                let caught_up = nodes.storage(new).applied_index();
                wait_for("the old leader to catch up", || nodes.storage(old).applied_index() >= caught_up);
                load.wait_for_commands("commands of all");
            });
            nodes.put(b"last", b"v");
            nodes.agree();
            nodes.finish();
            assert!(load.history.check() > 90);
        }
    }
}

#[test]
fn a_follower_that_is_cut_off_holds_nobody_up_and_gets_a_snapshot_of_every_region_over_the_wire() {
    let nodes = Nodes::start_with(CompletionMode::default(), |config| {
        config.store.split_keys = vec![b"m".to_vec()];
        config.store.log_gc_entries = 10;
        config.store.log_gc_size_limit = 1;
    });
    let leader = nodes.leader();
    nodes.make_leader(leader);
    let follower = NODES.into_iter().find(|id| *id != leader).unwrap();
    nodes.put(b"gone", b"v");
    nodes.agree();
    nodes.cut(follower, Mode::HungUp);
    let has: Vec<_> = nodes.storage(follower).regions().map(|region| region.applied_index()).collect();
    nodes.ask("a deletion", |storage| storage.raw_delete(b"gone"));
    // Enough for several chunks of each region.
    let value = |n: usize| vec![n as u8; 32 << 10];
    for n in 0..40 {
        for region in ["a", "z"] {
            nodes.put(format!("{region}-{n}").as_bytes(), &value(n));
        }
    }
    let others = || NODES.into_iter().filter(|id| *id != follower);
    let last = has.iter().max().unwrap() + 10;
    wait_for("the logs to forget", || others().all(|id| nodes.recorder(id).truncated_to() > last));
    let links = || others().flat_map(|id| nodes.node(id).links()).filter(|link| link.peer == follower);
    let dropped: u64 = links().map(|link| link.dropped).sum();
    assert!(dropped > 0, "what is sent to a node that is away is dropped");
    nodes.heal();
    nodes.agree();
    assert!(nodes.recorder(follower).count("SnapshotInstalling") >= 2);
    // It has all of it, and can lead.
    nodes.make_leader(follower);
    let storage = nodes.storage(follower);
    wait_for("a read", || storage.raw_get(b"gone").is_applied() && storage.raw_get(b"z").is_applied());
    let read = |key: &str| nodes.ask("a read", |storage| storage.raw_get(key.as_bytes()));
    assert_eq!(read("gone"), None);
    for n in 0..40 {
        for region in ["a", "z"] {
            let key = format!("{region}-{n}");
            assert_eq!(read(&key), Some(value(n)), "{key}");
        }
    }
    nodes.finish();
}

#[test]
fn a_node_at_rest_keeps_its_connections_and_sends_little() {
    with_more_time(Duration::from_millis(20), stays_as_it_is);
}

/// Lets three nodes be for three seconds. An election needs a leader that is not heard for a while, which a machine with other
/// things to do may bring about.
fn stays_as_it_is(tick: Duration) -> Option<()> {
    let nodes = Nodes::start_with(CompletionMode::default(), |config| config.store.tick = tick);
    let leader = nodes.leader();
    nodes.put(b"k", b"v");
    nodes.agree();
    let dropped = || -> u64 {
        let links = NODES.into_iter().flat_map(|id| nodes.node(id).links());
        links.map(|link| link.dropped).sum()
    };
    let carried =
        || -> u64 { NODES.into_iter().filter(|id| *id != leader).map(|id| nodes.carried(leader, id)).sum() };
    let term = nodes.storage(leader).status().term;
    let (dropped_before, carried_before) = (dropped(), carried());
    // Longer than a connection is left alone before it is asked whether it lives, and than an election takes.
    thread::sleep(Duration::from_secs(3));
    let dropped = dropped() - dropped_before;
    let sent = carried() - carried_before;
    let is_same = nodes.leader() == leader && nodes.storage(leader).status().term == term;
    nodes.finish();
    assert!(sent < 200_000, "{sent} bytes in three seconds of heartbeats");
    (dropped == 0 && sent > 0 && is_same).then_some(())
}
