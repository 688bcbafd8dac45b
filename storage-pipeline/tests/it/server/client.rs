//! Clients of a cluster over sockets: they find who leads, repeat what can be repeated and nothing else, and their histories
//! are right whoever is stopped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use storage_pipeline::{
    Cause, Client, ClientConfig, CommandError, CompletionMode, Error, InvalidCommand, Outcome,
    TransactionError,
    command::{Gc, RawPut, RawScan},
    raftstore::status::Role,
    region::{RegionContext, RegionEpoch},
    server::TlsFiles,
};
use tokio::runtime::Runtime;

use super::{
    history::{History, Op},
    link::Mode,
    nodes::{NODES, Nodes},
    tls::Authority,
};
use crate::support::{PATIENCE, checked, wait_for, with_more_time};

const ACCOUNTS: u64 = 8;
const TOTAL: u64 = 800;

fn address(nodes: &Nodes, id: u64) -> String {
    nodes.node(id).address().to_string()
}

/// A client that was told of these nodes only.
fn client(runtime: &Runtime, nodes: &Nodes, of: &[u64]) -> Client {
    let addresses = of.iter().map(|id| address(nodes, *id));
    let mut config = ClientConfig::new(7, addresses);
    config.timeout = PATIENCE;
    runtime.block_on(Client::connect(config)).unwrap()
}

fn two_regions(mode: CompletionMode) -> Nodes {
    Nodes::start_with(mode, |config| config.store.split_keys = vec![b"m".to_vec()])
}

/// A client that is told of one follower only, and so reaches the leader over the link between the two.
fn over_a_link(runtime: &Runtime, nodes: &Nodes) -> (Client, u64, u64) {
    nodes.put(b"first", b"v");
    let leader = nodes.leader();
    let follower = leader % 3 + 1;
    // Whoever else was asked would name the leader by a link of its own.
    wait_for("the follower to know who leads", || nodes.storage(follower).status().leader == Some(leader));
    let client = client(runtime, nodes, &[follower]);
    assert!(runtime.block_on(client.raw_get(b"first")).is_applied());
    (client, follower, leader)
}

#[test]
fn transactions_of_clients_span_regions_and_are_told_what_the_store_says() {
    let nodes = two_regions(CompletionMode::default());
    let runtime = Runtime::new().unwrap();
    // One node is enough to find all.
    let client = client(&runtime, &nodes, &[1]);
    assert_eq!(client.regions().all().len(), 2);
    runtime.block_on(async {
        let mut first = client.begin().await.into_result().unwrap();
        let mut second = client.begin().await.into_result().unwrap();
        first.put(b"a", b"1");
        first.put(b"z", b"1");
        assert_eq!(first.get(b"a").await.unwrap().as_deref(), Some(&b"1"[..]), "it sees its own writes");
        first.commit().await.unwrap();
        second.put(b"z", b"2");
        let error = second.commit().await.unwrap_err();
        let TransactionError::RolledBack(CommandError::NotExecuted(Error::WriteConflict(conflict))) = error
        else {
            panic!("{error}")
        };
        assert_eq!(conflict.key, b"z");
        let third = client.begin().await.into_result().unwrap();
        let found = third.scan(b"", b"", 10).await.unwrap();
        assert_eq!(found.iter().map(|pair| &pair.key[..]).collect::<Vec<_>>(), [b"a", b"z"]);

        let [start_key, end_key] = [b"a", b"z"].map(|key| key.to_vec());
        let both = RawScan { start_key, end_key, limit: 1, reverse: false, key_only: false };
        assert!(matches!(client.execute(both).await, Outcome::NotExecuted(Error::KeyNotInRegion { .. })));
        let gc = || Gc { safe_point: 1, keys: Vec::new() };
        assert_eq!(client.execute(gc()).await, Outcome::NotExecuted(Error::RegionNotNamed));
        for id in [1, 2] {
            let raised = client.execute_in(RegionContext { id, epoch: None }, gc()).await;
            assert_eq!(raised.map(|raised| raised.safe_point), Outcome::Applied(1));
        }
        let old = RegionContext { id: 2, epoch: Some(RegionEpoch { conf_ver: 99, version: 1 }) };
        let refused = client.execute_in(old, gc()).await;
        assert!(matches!(refused, Outcome::NotExecuted(Error::EpochNotMatch(_))), "{refused:?}");
        let large = RawPut { key: b"k".to_vec(), value: vec![0; 17 << 20] };
        let outcome = client.execute(large).await;
        let Outcome::NotExecuted(Error::InvalidCommand(InvalidCommand::TooLarge { field, .. })) = outcome
        else {
            panic!("{outcome:?}")
        };
        assert_eq!(field, "command", "it is not even sent");
    });
    nodes.finish();
}

#[test]
fn whoever_finds_no_cluster_or_another_one_is_told_so() {
    let nodes = Nodes::start(CompletionMode::default());
    let runtime = Runtime::new().unwrap();
    let mut config = ClientConfig::new(8, [address(&nodes, 1)]);
    let refused = runtime.block_on(Client::connect(config.clone())).unwrap_err();
    assert_eq!(refused, Error::Refused("this is cluster 7".into()));
    with_more_time(Duration::from_millis(300), |timeout| {
        let nodes = vec!["127.0.0.1:1".to_owned()];
        let config = ClientConfig { nodes, timeout, ..config.clone() };
        let Err(Error::Unreachable(why)) = runtime.block_on(Client::connect(config)) else {
            panic!("connected")
        };
        // Unless the time was up before the first attempt had failed.
        why.contains("127.0.0.1:1").then_some(())
    });
    config.nodes = Vec::new();
    assert!(matches!(runtime.block_on(Client::connect(config)), Err(Error::Unreachable(_))));
    nodes.finish();
}

#[test]
fn a_client_of_nodes_with_tls_needs_a_certificate_of_their_authority() {
    let dir = tempfile::tempdir().unwrap();
    let ours = Authority::new(dir.path(), "ours");
    let nodes = Nodes::start_with(CompletionMode::default(), |config| config.tls = ours.files("127.0.0.1"));
    let runtime = Runtime::new().unwrap();
    let connect = |tls, timeout| {
        let mut config = ClientConfig::new(7, [address(&nodes, 1)]);
        (config.tls, config.timeout) = (tls, timeout);
        runtime.block_on(Client::connect(config))
    };
    let client = connect(ours.files("client.example"), PATIENCE).unwrap();
    assert_eq!(runtime.block_on(client.raw_put(b"k", b"v")), Outcome::Applied(()));
    let theirs = Authority::new(dir.path(), "theirs").files("client.example");
    let unknown = TlsFiles { authority: ours.files("other.example").authority, ..theirs.clone() };
    for tls in [TlsFiles::default(), theirs, unknown] {
        let refused = connect(tls, Duration::from_secs(2)).unwrap_err();
        assert!(matches!(refused, Error::Unreachable(_)), "{refused}");
    }
    let half = TlsFiles { certificate: None, ..ours.files("client.example") };
    assert!(
        matches!(connect(half, PATIENCE), Err(Error::Refused(why)) if why.starts_with("tls_certificate"))
    );
    nodes.finish();
}

#[test]
fn a_raw_write_whose_connection_breaks_is_told_as_unknown_and_what_can_be_repeated_is() {
    with_more_time(Duration::from_millis(20), breaks_under_a_write);
}

/// `None` where another node was elected before the connection broke, as happens on a machine that has other things to do.
fn breaks_under_a_write(tick: Duration) -> Option<()> {
    let nodes = Nodes::start_with(CompletionMode::default(), |config| config.store.tick = tick);
    let runtime = Runtime::new().unwrap();
    let (client, follower, leader) = over_a_link(&runtime, &nodes);
    let term = nodes.storage(leader).status().term;
    if nodes.storage(leader).status().role != Role::Leader {
        nodes.finish();
        return None;
    }
    let proposed = |nodes: &Nodes| NODES.map(|id| nodes.recorder(id).count("Proposed")).iter().sum::<usize>();
    // Something else may be held at apply, long before the command comes.
    let wait_held = |before: usize| {
        wait_for("the command is proposed", || proposed(&nodes) > before);
        nodes.recorder(leader).wait_held("Applying");
    };
    let held_at_apply = |before: usize, cut: &dyn Fn()| {
        nodes.recorder(leader).hold("Applying");
        let run = runtime.spawn({
            let client = client.clone();
            async move { client.raw_put(b"key", b"value").await }
        });
        wait_held(before);
        cut();
        let outcome = runtime.block_on(run).unwrap();
        nodes.recorder(leader).let_go("Applying");
        outcome
    };
    let before = proposed(&nodes);
    let outcome = held_at_apply(before, &|| nodes.cut_link(follower, leader, Mode::HungUp));
    if nodes.storage(leader).status().term != term {
        nodes.finish();
        return None;
    }
    assert!(matches!(outcome, Outcome::Indeterminate(Cause::ConnectionLost(_))), "{outcome:?}");
    assert_eq!(proposed(&nodes), before + 1, "it was sent once");
    nodes.heal();
    assert_eq!(runtime.block_on(client.raw_get(b"key")), Outcome::Applied(Some(b"value".to_vec())));

    // The same break under a command of a transaction: it is sent again, and its outcome is known.
    nodes.recorder(leader).hold("Applying");
    let before = proposed(&nodes);
    let run = runtime.spawn({
        let client = client.clone();
        async move { client.execute(checked("key")).await }
    });
    wait_held(before);
    nodes.cut_link(follower, leader, Mode::HungUp);
    thread::sleep(Duration::from_millis(50));
    nodes.recorder(leader).let_go("Applying");
    nodes.heal();
    assert_eq!(runtime.block_on(run).unwrap(), Outcome::Applied(()));
    nodes.finish();
    Some(())
}

#[test]
fn commands_of_many_tasks_share_a_connection_whatever_their_size_and_outlive_the_runtime_that_made_it() {
    let nodes = two_regions(CompletionMode::default());
    let first = Runtime::new().unwrap();
    let client = client(&first, &nodes, &[1]);
    let put_and_read = |runtime: &Runtime, round: usize| {
        let tasks = (0..64).map(|n| {
            let client = client.clone();
            runtime.spawn(async move {
                // From nothing to more than is sent over the stream.
                let (key, value) = (format!("{}-{n}", if n % 2 == 0 { "a" } else { "z" }), vec![7; n * 2500]);
                let put = client.raw_put(key.as_bytes(), &value).await;
                assert!(put.is_applied(), "{put:?} in round {round}");
                assert_eq!(client.raw_get(key.as_bytes()).await, Outcome::Applied(Some(value)));
            })
        });
        let tasks: Vec<_> = tasks.collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    };
    put_and_read(&first, 1);
    drop(first);
    put_and_read(&Runtime::new().unwrap(), 2);
    nodes.finish();
}

/// What the clients of the test below share.
struct Shared {
    client: Client,
    history: History,
    stop: AtomicBool,
    values: AtomicU64,
    transfers: AtomicU64,
    /// How often a client was told, at the end of its time, that nothing was executed.
    refused: AtomicU64,
}

impl Shared {
    /// Writes and reads raw keys of both regions.
    async fn raw(&self, client: u64) {
        for n in client.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let key = format!("{}-key", if n % 2 == 0 { "a" } else { "z" });
            let called = self.history.now();
            if n % 3 == 0 {
                if let Outcome::Applied(value) = self.client.raw_get(key.as_bytes()).await {
                    let value = value.map(|value| String::from_utf8(value).unwrap().parse().unwrap());
                    self.history.add(&key, Op::Get(value), called, Some(self.history.now()));
                }
                continue;
            }
            let value = self.values.fetch_add(1, Ordering::Relaxed);
            match self.client.raw_put(key.as_bytes(), value.to_string().as_bytes()).await {
                Outcome::Applied(()) => {
                    self.history.add(&key, Op::Put(value), called, Some(self.history.now()));
                }
                Outcome::Indeterminate(_) => self.history.add(&key, Op::Put(value), called, None),
                Outcome::NotExecuted(_) => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
            }
        }
    }

    /// Moves money from one account to another.
    async fn transfer(&self, n: u64) -> Result<(), Box<dyn std::error::Error>> {
        let [from, to] = [n, n * 3 + 1].map(|n| account(n % ACCOUNTS));
        let mut transfer = self.client.begin().await.into_result()?;
        if from == to {
            return Ok(());
        }
        let [mut left, mut right] = [balance(transfer.get(&from).await?), balance(transfer.get(&to).await?)];
        let amount = left.min(n % 5);
        (left, right) = (left - amount, right + amount);
        transfer.put(&from, left.to_string().as_bytes());
        transfer.put(&to, right.to_string().as_bytes());
        transfer.commit().await?;
        self.transfers.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn account(n: u64) -> Vec<u8> {
    // Of both regions by turns.
    format!("{}-account-{n}", if n.is_multiple_of(2) { "a" } else { "z" }).into_bytes()
}

fn balance(value: Option<Vec<u8>>) -> u64 {
    String::from_utf8(value.expect("every account has a balance")).unwrap().parse().unwrap()
}

/// The balances of all accounts, as one transaction sees them.
async fn total(client: &Client) -> Result<u64, Box<dyn std::error::Error>> {
    let read = client.begin().await.into_result()?;
    let mut total = 0;
    for n in 0..ACCOUNTS {
        total += balance(read.get(&account(n)).await?);
    }
    Ok(total)
}

#[test]
fn clients_lose_nothing_and_no_money_appears_while_each_node_is_stopped_in_turn() {
    let mut nodes = two_regions(CompletionMode::default());
    let runtime = Runtime::new().unwrap();
    let client = client(&runtime, &nodes, &NODES);
    runtime.block_on(async {
        let mut open = client.begin().await.into_result().unwrap();
        (0..ACCOUNTS).for_each(|n| open.put(&account(n), (TOTAL / ACCOUNTS).to_string().as_bytes()));
        open.commit().await.unwrap();
    });
    let shared = Arc::new(Shared {
        client,
        history: History::default(),
        stop: AtomicBool::new(false),
        values: AtomicU64::new(0),
        transfers: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    });
    let mut tasks = Vec::new();
    for n in 0..3 {
        let shared = Arc::clone(&shared);
        tasks.push(runtime.spawn(async move { shared.raw(n).await }));
    }
    for first in 0..2 {
        let shared = Arc::clone(&shared);
        tasks.push(runtime.spawn(async move {
            for n in first.. {
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                // Conflicts are as they should be; whatever else is in the way shows in the sum.
                let _ = shared.transfer(n).await;
                if n % 4 == 0
                    && let Ok(total) = total(&shared.client).await
                {
                    assert_eq!(total, TOTAL);
                }
            }
        }));
    }
    let go_on = |what: &str| {
        let [values, transfers] =
            [&shared.values, &shared.transfers].map(|count| count.load(Ordering::Relaxed));
        let more = |count: &AtomicU64, before| count.load(Ordering::Relaxed) > before + 10;
        wait_for(what, || more(&shared.values, values) && more(&shared.transfers, transfers));
    };
    for id in NODES {
        go_on("commands of all nodes");
        nodes.make_leader(id);
        nodes.stop_node(id);
        go_on("commands without a node");
        nodes.start_node(id);
    }
    go_on("commands of all nodes");
    shared.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        runtime.block_on(task).expect("no client saw money appear or vanish");
    }
    assert_eq!(runtime.block_on(total(&shared.client)).unwrap(), TOTAL);
    assert_eq!(
        shared.refused.load(Ordering::Relaxed),
        0,
        "a client's patience outlives every change of leaders"
    );
    nodes.finish();
    assert!(shared.history.check() > 50);
}
