//! Operations over the wire: a node joins as a learner, is promoted, leads, and one leaves, while clients write.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use storage_pipeline::{
    Client, ClientConfig, CompletionMode, Error, Outcome,
    members::{MemberChange, MemberChangeRefused, Members},
    raftstore::status::Role,
};
use tokio::runtime::Runtime;

use super::nodes::{NODES, Nodes};
use crate::support::{PATIENCE, wait_for};

fn members(voters: &[u64], learners: &[u64]) -> Members {
    let [voters, learners] = [voters, learners].map(|ids| ids.iter().copied().collect());
    Members { voters, learners, ..Members::default() }
}

/// Asks until a change is done. What became of one whose leader went away, the members say.
async fn change(client: &Client, changes: &[MemberChange], expected: &Members) {
    let began = Instant::now();
    loop {
        let outcome = client.change_members(1, changes).await;
        let is = client.members(1).await;
        if is.as_ref() == Ok(expected) {
            return;
        }
        assert!(!outcome.is_applied() || began.elapsed() < PATIENCE, "{changes:?}: {outcome:?}, and {is:?}");
        assert!(began.elapsed() < PATIENCE, "{changes:?}: {outcome:?}");
    }
}

fn refused(outcome: &Outcome<()>) -> MemberChangeRefused {
    let Outcome::NotExecuted(Error::MemberChange(why)) = outcome else { panic!("{outcome:?}") };
    *why
}

#[test]
fn a_node_joins_is_promoted_leads_and_another_one_leaves_through_the_wire_under_load() {
    let nodes = Nodes::start_with(CompletionMode::default(), |config| config.store.voters = vec![1, 2]);
    nodes.put(b"first", b"v");
    let runtime = Runtime::new().unwrap();
    let addresses = || NODES.map(|id| nodes.node(id).address().to_string());
    let client = runtime.block_on(Client::connect(ClientConfig::new(7, addresses()))).unwrap();
    let over = AtomicBool::new(false);
    let load = async {
        let mut acknowledged = Vec::new();
        for n in 0u32.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let key = format!("key-{n}");
            if client.raw_put(key.as_bytes(), b"v").await.is_applied() {
                acknowledged.push(key);
            }
        }
        acknowledged
    };
    let operations = async {
        let Members { voters, .. } = client.members(1).await.unwrap();
        assert_eq!(voters, [1, 2].into());
        change(&client, &[MemberChange::AddLearner(3)], &members(&[1, 2], &[3])).await;
        let why = refused(&client.transfer_leader(1, 3).await);
        assert_eq!(why, MemberChangeRefused::NoVoter { replica: 3 });
        change(&client, &[MemberChange::AddVoter(3)], &members(&[1, 2, 3], &[])).await;
        let why = refused(&client.change_members(1, &[MemberChange::Remove(9)]).await);
        assert_eq!(why, MemberChangeRefused::Unknown { replica: 9 });
        assert_eq!(
            client.transfer_leader(4, 3).await,
            Outcome::NotExecuted(Error::RegionNotFound { region: 4 })
        );
        let began = Instant::now();
        while !client.transfer_leader(1, 3).await.is_applied() {
            assert!(began.elapsed() < PATIENCE, "the transfer");
        }
        change(&client, &[MemberChange::Remove(1)], &members(&[2, 3], &[])).await;
        over.store(true, Ordering::Relaxed);
    };
    let (acknowledged, ()) = runtime.block_on(async { tokio::join!(load, operations) });
    assert!(!acknowledged.is_empty());
    for id in [2, 3] {
        assert_eq!(nodes.storage(id).members(), Ok(members(&[2, 3], &[])));
    }
    runtime.block_on(async {
        for key in &acknowledged {
            assert_eq!(client.raw_get(key.as_bytes()).await, Outcome::Applied(Some(b"v".to_vec())), "{key}");
        }
    });
    drop(client);
    nodes.finish();
}

#[test]
fn a_node_that_the_others_learn_of_while_they_run_joins_and_one_that_they_forget_is_outside() {
    let nodes = Nodes::start_with(CompletionMode::default(), |config| config.store.voters = vec![1, 2]);
    let (third, others) = (3, [1, 2]);
    let linked = |id: u64| nodes.node(id).links().map(|link| link.peer).collect::<Vec<_>>();
    let is_known = |id: u64| linked(id).contains(&third);
    let forget = || {
        for id in others {
            let mut known = nodes.peers_of(id);
            known.remove(&third);
            nodes.node(id).set_peers(&known).unwrap();
        }
        assert!(!others.into_iter().any(is_known));
    };
    let learn = || others.iter().for_each(|id| nodes.node(*id).set_peers(&nodes.peers_of(*id)).unwrap());
    let applied = || nodes.storage(third).applied_index();
    nodes.put(b"first", b"v");
    forget();
    let runtime = Runtime::new().unwrap();
    let addresses = others.map(|id| nodes.node(id).address().to_string());
    let client = runtime.block_on(Client::connect(ClientConfig::new(7, addresses))).unwrap();
    let before = applied();
    runtime.block_on(change(&client, &[MemberChange::AddLearner(third)], &members(&others, &[third])));
    nodes.put(b"second", b"v");
    assert_eq!(applied(), before, "it is a member, and nobody knows where it is");
    learn();
    wait_for("what the others have", || applied() > before);
    runtime.block_on(change(&client, &[MemberChange::AddVoter(third)], &members(&NODES, &[])));
    runtime.block_on(async {
        let began = Instant::now();
        // The client learns of it by a hint, too.
        while !client.transfer_leader(1, third).await.is_applied() {
            assert!(began.elapsed() < PATIENCE, "the transfer");
        }
        assert_eq!(client.raw_put(b"third", b"v").await, Outcome::Applied(()));
    });
    // What is nobody's address changes nothing, and one that changes is dialled anew.
    let refused = nodes.node(1).set_peers(&[(2, "nowhere".to_owned())].into()).unwrap_err();
    assert!(refused.to_string().contains('2'), "{refused}");
    assert_eq!(linked(1), [2, 3]);
    // It hears no more of a leader, and cannot tell anybody that it would like to be one.
    runtime.block_on(async {
        let began = Instant::now();
        while !client.transfer_leader(1, 1).await.is_applied() {
            assert!(began.elapsed() < PATIENCE, "the transfer");
        }
    });
    forget();
    nodes.put(b"fourth", b"v");
    let applied_then = applied();
    nodes.put(b"fifth", b"v");
    assert_eq!(applied(), applied_then);
    learn();
    wait_for("what the others have", || applied() > applied_then);
    drop(client);
    nodes.finish();
}

/// Its status and what it printed.
fn operate(nodes: &Nodes, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_storage-pipeline"));
    command.arg(arguments[0]).args(["--cluster-id", "7"]).args(&arguments[1..]);
    for id in NODES {
        command.args(["--node", &nodes.node(id).address().to_string()]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().expect("no signal"), text)
}

#[test]
fn the_binary_says_who_belongs_to_a_group_changes_that_and_transfers_the_leadership() {
    let nodes = Nodes::start_with(CompletionMode::default(), |config| config.store.voters = vec![1, 2]);
    nodes.put(b"first", b"v");
    let until = |arguments: &[&str], words: &str| {
        wait_for(words, || {
            let (status, said) = operate(&nodes, arguments);
            status == 0 && said.contains(words)
        });
    };
    until(&["members"], "voters: 1, 2\nlearners: \n");
    // What was done before an answer was lost is refused when it is asked for again.
    let _ = operate(&nodes, &["members", "--add-learner", "3"]);
    until(&["members"], "voters: 1, 2\nlearners: 3\n");
    let (status, said) = operate(&nodes, &["members", "--add-learner", "3"]);
    assert!(status == 1 && said.contains("replica 3 has that place already"), "{status}: {said}");
    let (status, said) = operate(&nodes, &["transfer", "--to", "3"]);
    assert!(status == 1 && said.contains("replica 3 has no vote"), "{status}: {said}");
    let _ = operate(&nodes, &["members", "--add-voter", "3"]);
    until(&["members"], "voters: 1, 2, 3\nlearners: \n");
    until(&["transfer", "--to", "3"], "");
    wait_for("the leader", || nodes.storage(3).status().role == Role::Leader);
    let (status, said) = operate(&nodes, &["members", "--region", "9"]);
    assert!(status == 1 && said.contains("region 9"), "{status}: {said}");
    let (status, said) = operate(&nodes, &["transfer"]);
    assert!(status == 2 && said.contains("--to"), "{status}: {said}");
    nodes.finish();
}
