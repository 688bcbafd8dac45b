//! The service without a network: what each request is answered.

use std::future::Future;

use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use super::{commands::Commands, *};
use crate::{
    command::{AllocateTimestamps, RawGet, RawPut, RawScan, Response as Applied},
    config::Config,
    members::MemberChangeRefused,
    protocol::{
        Malformed,
        wire::{commands_request::Asked, store_server::Store},
    },
    server::{
        peers::Peers,
        phase::{self, Lever, Phase},
    },
    storage::Cluster,
};

/// A machine that has other things to do is slow, not wrong.
const PATIENCE: Duration = Duration::from_secs(60);

const HEADER: wire::Header =
    wire::Header { protocol_version: PROTOCOL_VERSION, cluster_id: 7, timeout_ms: 0 };

fn service(storage: &Storage, config: NodeConfig) -> (Lever, StoreService) {
    let (lever, watch) = phase::serving();
    let peers = Peers::new(config.node_id(), "127.0.0.1:20160".to_owned(), config.peers.clone());
    let identity = Identity { cluster_id: 7, node_id: config.node_id(), peers: Arc::new(peers) };
    (lever, StoreService::new(&config, &Arc::new(identity), storage, &watch))
}

fn config() -> NodeConfig {
    let mut config = NodeConfig::default();
    config.store.replica_id = 1;
    config.max_message_bytes = 1000;
    config
}

fn store(dir: &tempfile::TempDir) -> Storage {
    let mut config = Config::new(dir.path());
    config.split_keys = vec![b"m".to_vec()];
    Storage::open(config).unwrap()
}

/// The answer to one request, with a runtime of its own.
fn run<T>(answer: impl Future<Output = Result<Response<T>, Status>>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(answer).unwrap().into_inner()
}

fn ask(service: &StoreService, header: wire::Header, command: Option<wire::Command>) -> Reply {
    let request = wire::ExecuteRequest { header: Some(header), command, region: None };
    run(service.execute(Request::new(request))).try_into().unwrap()
}

fn execute(service: &StoreService, command: impl Into<Command>) -> Outcome<Applied> {
    ask(service, HEADER, Some(command.into().into())).outcome.unwrap()
}

fn put(key: &[u8], value: &[u8]) -> RawPut {
    RawPut { key: key.to_vec(), value: value.to_vec() }
}

fn get(key: &[u8]) -> RawGet {
    RawGet { key: key.to_vec() }
}

#[test]
fn a_command_is_run_and_answered_with_its_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let storage = store(&dir);
    let (_lever, service) = service(&storage, config());
    assert_eq!(execute(&service, put(b"k", b"v")), Outcome::Applied(Applied::Done));
    assert_eq!(execute(&service, get(b"k")), Outcome::Applied(Applied::Value(Some(b"v".to_vec()))));
    let empty = InvalidCommand::EmptyKey { field: "key".into() };
    assert_eq!(execute(&service, get(b"")), Outcome::NotExecuted(Error::InvalidCommand(empty)));
    let [start_key, end_key] = [b"a", b"z"].map(|key| key.to_vec());
    let both = RawScan { start_key, end_key, limit: 1, reverse: false, key_only: false };
    assert!(matches!(execute(&service, both), Outcome::NotExecuted(Error::KeyNotInRegion { region: 1, .. })));
    storage.close();
    assert_eq!(execute(&service, get(b"k")), Outcome::NotExecuted(Error::Closed));
}

#[test]
fn a_request_that_means_another_cluster_or_nothing_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let storage = store(&dir);
    let (_lever, service) = service(&storage, config());
    let command = || Some(Command::from(put(b"k", b"v")).into());
    let newer = wire::Header { protocol_version: 2, ..HEADER };
    assert_eq!(ask(&service, newer, command()).outcome, Err(Refusal::ProtocolVersion(PROTOCOL_VERSION)));
    let other = wire::Header { cluster_id: 8, ..HEADER };
    assert_eq!(ask(&service, other, command()).outcome, Err(Refusal::Cluster(7)));
    for command in [None, Some(wire::Command::default())] {
        assert_eq!(
            ask(&service, HEADER, command).outcome,
            Err(Refusal::Malformed(Malformed::unset("command")))
        );
    }
    let reply = run(service.timestamp(Request::new(wire::TimestampRequest { header: Some(other) })));
    assert_eq!(Reply::try_from(reply).unwrap().outcome, Err(Refusal::Cluster(7)));
    let reply = run(service.regions(Request::new(wire::RegionsRequest { header: None })));
    assert_eq!(reply.refused, Some(Refusal::ProtocolVersion(PROTOCOL_VERSION).into()));
    assert!(reply.regions.is_empty());
    assert_eq!(execute(&service, get(b"k")), Outcome::Applied(Applied::Value(None)), "nothing was written");
}

#[test]
fn a_command_that_names_its_region_is_executed_in_that_one_and_in_its_epoch_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let storage = store(&dir);
    let (_lever, service) = service(&storage, config());
    let ask = |command: Command, id, epoch| {
        let region = Some(wire::RegionContext { id, epoch });
        let request = wire::ExecuteRequest { header: Some(HEADER), command: Some(command.into()), region };
        Reply::try_from(run(service.execute(Request::new(request)))).unwrap().outcome.unwrap()
    };
    let gc = || Command::from(command::Gc { safe_point: 1, keys: Vec::new() });
    assert_eq!(execute(&service, gc()), Outcome::NotExecuted(Error::RegionNotNamed));
    for id in [1, 2] {
        storage.timestamp().into_result().unwrap();
        assert!(ask(gc(), id, None).is_applied());
    }
    assert_eq!(ask(gc(), 3, None), Outcome::NotExecuted(Error::RegionNotFound { region: 3 }));
    let wrong = ask(get(b"k").into(), 2, None);
    assert!(matches!(wrong, Outcome::NotExecuted(Error::KeyNotInRegion { region: 2, .. })));
    let epoch = storage.region(1).unwrap().epoch().unwrap();
    let old = wire::RegionEpoch { conf_ver: epoch.conf_ver + 1, version: epoch.version };
    let Outcome::NotExecuted(Error::EpochNotMatch(current)) = ask(get(b"k").into(), 1, Some(old)) else {
        panic!("it is of another epoch")
    };
    assert_eq!(current.epoch, epoch);
    assert!(ask(get(b"k").into(), 1, Some(epoch.into())).is_applied());
}

/// Requests with these numbers.
fn numbered(asked: Vec<Asked>) -> Vec<Result<wire::CommandsRequest, Status>> {
    let all = asked.into_iter().zip(0..);
    all.map(|(asked, id)| Ok(wire::CommandsRequest { id, asked: Some(asked) })).collect()
}

fn executes(command: impl Into<Command>) -> Asked {
    let command = Some(command.into().into());
    Asked::Execute(wire::ExecuteRequest { header: Some(HEADER), command, region: None })
}

/// What a stream of requests is answered until it ends, in the order of the requests.
fn answers(
    service: &StoreService,
    asked: impl Stream<Item = Result<wire::CommandsRequest, Status>> + Unpin,
) -> Vec<Result<Outcome<Applied>, Refusal>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let stream = Commands::new(service.clone(), asked);
    let mut all: Vec<_> = runtime.block_on(stream.map(Result::unwrap).collect());
    all.sort_by_key(|answer| answer.id);
    assert!(all.iter().map(|answer| answer.id).eq(0..all.len() as u64), "each is answered, and once");
    all.into_iter().map(|answer| Reply::try_from(answer.reply.unwrap()).unwrap().outcome).collect()
}

#[test]
fn requests_of_a_stream_are_answered_each_as_a_call_would_be() {
    let dir = tempfile::tempdir().unwrap();
    let storage = store(&dir);
    let (lever, service) = service(&storage, config());
    assert!(execute(&service, put(b"k", b"v")).is_applied());
    let timestamp = |cluster_id| {
        let header = Some(wire::Header { cluster_id, ..HEADER });
        Asked::Timestamp(wire::TimestampRequest { header })
    };
    let asked =
        vec![executes(get(b"k")), executes(get(b"")), timestamp(7), timestamp(8), executes(put(b"l", b"w"))];
    let told = answers(&service, tokio_stream::iter(numbered(asked)));
    let empty = InvalidCommand::EmptyKey { field: "key".into() };
    assert_eq!(told[0], Ok(Outcome::Applied(Applied::Value(Some(b"v".to_vec())))));
    assert_eq!(told[1], Ok(Outcome::NotExecuted(Error::InvalidCommand(empty))));
    assert!(matches!(told[2], Ok(Outcome::Applied(Applied::Timestamps(_)))));
    assert_eq!(told[3], Err(Refusal::Cluster(7)));
    assert_eq!(told[4], Ok(Outcome::Applied(Applied::Done)));
    let nothing = Ok(wire::CommandsRequest { id: 0, asked: None });
    let told = answers(&service, tokio_stream::iter([nothing]));
    assert_eq!(told, [Err(Refusal::Malformed(Malformed::unset("asked")))]);
    lever.enter(Phase::Draining);
    let told = answers(&service, tokio_stream::iter(numbered(vec![executes(get(b"k")), timestamp(7)])));
    assert_eq!(told, [(); 2].map(|()| Ok(Outcome::NotExecuted(Error::Closed))));
}

#[test]
fn a_stream_has_no_more_under_way_than_a_connection_may_and_ends_with_the_node() {
    let dir = tempfile::tempdir().unwrap();
    let storage = store(&dir);
    let (lever, service) = service(&storage, NodeConfig { max_connection_requests: 2, ..config() });
    let (ask, asked) = tokio::sync::mpsc::channel(8);
    for request in numbered((0..8).map(|_| executes(put(b"k", b"v"))).collect()) {
        ask.try_send(request).unwrap();
    }
    let mut stream = Commands::new(service, tokio_stream::wrappers::ReceiverStream::new(asked));
    let mut nobody = std::task::Context::from_waker(std::task::Waker::noop());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    let mut told = 0;
    while told < 8 {
        if std::pin::Pin::new(&mut stream).poll_next(&mut nobody).is_ready() {
            told += 1;
        }
        let read = ask.capacity();
        assert!(read <= told + 2, "{read} are read and {told} are answered");
    }
    assert!(std::pin::Pin::new(&mut stream).poll_next(&mut nobody).is_pending(), "more may come");
    lever.enter(Phase::Stopped);
    assert!(runtime.block_on(stream.next()).is_none());
}

#[test]
fn a_node_that_drains_takes_nothing_new() {
    let dir = tempfile::tempdir().unwrap();
    let storage = store(&dir);
    let (lever, service) = service(&storage, config());
    lever.enter(Phase::Draining);
    assert_eq!(execute(&service, put(b"k", b"v")), Outcome::NotExecuted(Error::Closed));
    let reply = run(service.timestamp(Request::new(wire::TimestampRequest { header: Some(HEADER) })));
    assert_eq!(Reply::try_from(reply).unwrap().outcome, Ok(Outcome::NotExecuted(Error::Closed)));
    assert_eq!(storage.raw_get(b"k"), Outcome::Applied(None));
}

#[test]
fn a_read_of_more_than_a_reply_holds_is_refused_and_a_write_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let storage = store(&dir);
    let (_lever, service) = service(&storage, config());
    let value = vec![7; 2000];
    assert_eq!(execute(&service, put(b"k", &value)), Outcome::Applied(Applied::Done));
    let Outcome::NotExecuted(Error::InvalidCommand(InvalidCommand::TooLarge { field, size, limit: 1000 })) =
        execute(&service, get(b"k"))
    else {
        panic!("the value is larger than a reply may be")
    };
    assert!(field == "reply" && size > value.len());
    let swap =
        command::RawCompareAndSwap { key: b"k".to_vec(), previous: Some(value.clone()), value: Vec::new() };
    let swapped = execute(&service, swap);
    assert!(matches!(swapped, Outcome::Applied(Applied::CompareAndSwap(_))), "it took effect: {swapped:?}");
}

#[test]
fn timestamps_rise_and_nobody_can_use_them_up() {
    let dir = tempfile::tempdir().unwrap();
    let storage = store(&dir);
    let (_lever, service) = service(&storage, config());
    let mut last = 0;
    for _ in 0..100 {
        let reply = run(service.timestamp(Request::new(wire::TimestampRequest { header: Some(HEADER) })));
        let Ok(Outcome::Applied(Applied::Timestamps(range))) = Reply::try_from(reply).unwrap().outcome else {
            panic!("it leads")
        };
        assert!(range.first > last && range.limit == range.first + 1);
        last = range.first;
    }
    let now = wall_clock();
    for (at_least, window, field) in [(u64::MAX - 9, 1, "at_least"), (now, u64::MAX >> 1, "window")] {
        let outcome = execute(&service, AllocateTimestamps { at_least, window });
        let Outcome::NotExecuted(Error::InvalidCommand(InvalidCommand::OutOfRange { field: of, .. })) =
            outcome
        else {
            panic!("{outcome:?}")
        };
        assert_eq!(of, field);
    }
    assert!(execute(&service, AllocateTimestamps { at_least: now, window: 10 }).is_applied());
}

#[test]
fn who_does_not_lead_says_where_the_leader_is_and_everybody_lists_the_regions() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Config::new(dir.path());
    store.tick = Duration::from_millis(10);
    store.split_keys = vec![b"m".to_vec()];
    let cluster = Cluster::open(store, 3).unwrap();
    let leader = cluster.wait_for_leader(PATIENCE).unwrap();
    let id = leader.status().replica;
    let other = id % 3 + 1;
    let mut config = config();
    config.store.replica_id = other;
    config.peers = (1..=3).map(|id| (id, format!("node-{id}:1"))).collect();
    let follower = cluster.replica(other).unwrap();
    let (_lever, service) = service(follower, config);
    let started = std::time::Instant::now();
    let reply = loop {
        let reply = ask(&service, HEADER, Some(Command::from(get(b"k")).into()));
        if reply.leader_address.is_some() || started.elapsed() > PATIENCE {
            break reply;
        }
    };
    let Ok(Outcome::NotExecuted(Error::NotLeader { leader: Some(leads) })) = reply.outcome else {
        panic!("{reply:?}")
    };
    assert_eq!(reply.leader_address, Some(format!("node-{leads}:1")));
    let reply = run(service.regions(Request::new(wire::RegionsRequest { header: Some(HEADER) })));
    let ranges: Vec<_> =
        reply.regions.iter().map(|r| (r.id, r.start_key.clone(), r.end_key.clone())).collect();
    assert_eq!(ranges, [(1, vec![], b"m".to_vec()), (2, b"m".to_vec(), vec![])]);
    let ids: Vec<_> = reply.nodes.iter().map(|node| node.id).collect();
    assert_eq!(ids, [1, 2, 3]);
}

/// What a change of members comes to.
fn change(
    service: &StoreService,
    region: u64,
    changes: Vec<wire::MemberChange>,
) -> Result<Outcome<Applied>, Refusal> {
    let request = wire::ChangeMembersRequest { header: Some(HEADER), region, changes };
    Reply::try_from(run(service.change_members(Request::new(request)))).unwrap().outcome
}

fn transfer(service: &StoreService, region: u64, to: u64) -> Result<Outcome<Applied>, Refusal> {
    let request = wire::TransferLeaderRequest { header: Some(HEADER), region, to };
    Reply::try_from(run(service.transfer_leader(Request::new(request)))).unwrap().outcome
}

#[test]
fn what_an_operator_cannot_have_is_refused_by_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let storage = store(&dir);
    let (lever, service) = service(&storage, config());
    let not_executed = |error| Ok(Outcome::NotExecuted(error));
    let add = || vec![wire::MemberChange::from(crate::members::MemberChange::AddLearner(2))];
    for region in [0, 3, u64::MAX] {
        assert_eq!(change(&service, region, add()), not_executed(Error::RegionNotFound { region }));
        assert_eq!(transfer(&service, region, 2), not_executed(Error::RegionNotFound { region }));
    }
    let alone = MemberChangeRefused::Alone;
    assert_eq!(change(&service, 2, add()), not_executed(Error::MemberChange(alone)));
    let no_voter = MemberChangeRefused::NoVoter { replica: 2 };
    assert_eq!(transfer(&service, 1, 2), not_executed(Error::MemberChange(no_voter)));
    assert_eq!(transfer(&service, 1, 1), Ok(Outcome::Applied(Applied::Done)), "it leads already");
    let malformed = change(&service, 1, vec![wire::MemberChange::default()]).unwrap_err();
    assert!(matches!(malformed, Refusal::Malformed(Malformed { field, .. }) if field == "changes.change"));
    let header = wire::Header { cluster_id: 8, ..HEADER };
    let request = wire::TransferLeaderRequest { header: Some(header), region: 1, to: 1 };
    let reply = Reply::try_from(run(service.transfer_leader(Request::new(request)))).unwrap();
    assert_eq!(reply.outcome, Err(Refusal::Cluster(7)));
    lever.enter(Phase::Draining);
    assert_eq!(change(&service, 1, add()), not_executed(Error::Closed));
    assert_eq!(transfer(&service, 1, 1), not_executed(Error::Closed));
    storage.close();
}
