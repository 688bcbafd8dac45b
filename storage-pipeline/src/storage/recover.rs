//! What a replica is when it starts: its log, its data and its membership, checked against each other. Hands on the
//! peer and the delegate that go on from there.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use raft::{RawNode, eraftpb::ConfState};

use crate::{
    apply::{
        delegate::Delegate,
        membership::Membership,
        state::{ApplyState, load_membership},
    },
    clock,
    config::{Config, ConfigError},
    engine::{Engine, region::RegionEngine},
    error::{Error, OpenError},
    local_reader::lease::LeaseTracker,
    maintenance::RegionData,
    observe::Observer,
    planted::planted,
    raft_log::slog_to_tracing,
    raftstore::{
        log_storage::{LogStorage, Position, RegionLog},
        peer::{Outside, Peer},
        snapshot::Snapshots,
        staging::{Manifest, Staging},
        transport::{Message, Transport},
    },
    region::{CurrentRegion, Region, RegionEpoch, Regions},
    storage::{
        Parts,
        identity::{check_split_keys, identify},
    },
    txn::meta::Number,
};

/// A replica that can start.
pub(crate) struct Recovered {
    /// What the engines of all regions are views of.
    pub(crate) engine: Arc<dyn Engine>,
    /// In the order of their ids.
    pub(crate) regions: Vec<RecoveredRegion>,
    /// No other replica can be reached.
    pub(crate) is_alone: bool,
}

/// One of its regions.
pub(crate) struct RecoveredRegion {
    pub(crate) peer: Peer,
    pub(crate) delegate: Delegate,
    /// What is applied, and left for certain.
    pub(crate) data: RegionData,
    /// Up to where the log was truncated.
    pub(crate) truncated: u64,
    pub(crate) staging: Arc<Staging>,
}

/// The transport of a replica without others, which never has anything to send.
struct Nobody;

impl Transport for Nobody {
    fn send(&self, _: u64, messages: Vec<Message>) {
        tracing::error!("{} messages for replicas that cannot be reached", messages.len());
    }
}

/// Reads the two stores of a replica. Without a transport it must be the only one of its group.
///
/// Each region is read for itself, as if there were no other.
pub(crate) fn recover(
    config: &Config,
    parts: Parts,
    transport: Option<Arc<dyn Transport>>,
    observer: &Observer,
) -> Result<Recovered, OpenError> {
    let Parts { dir, engine, log } = parts;
    let in_data = |error: Error| OpenError::Corrupt { path: dir.clone(), what: error.to_string() };
    check_split_keys(&*engine, config, &in_data)?;
    let (regions, log) = (Regions::split_at(&config.split_keys), RegionLog::from(log));
    let mut recovered = Vec::new();
    for region in regions.all() {
        let engine: Arc<dyn Engine> = match regions.all() {
            [_] => Arc::clone(&engine),
            _ => Arc::new(RegionEngine::new(Arc::clone(&engine), region)),
        };
        let own = Own { dir: &dir, engine, log: log.of(region.id), region };
        recovered.push(recover_region(config, own, transport.clone(), observer)?);
    }
    Ok(Recovered { engine, regions: recovered, is_alone: transport.is_none() })
}

/// What a region has of a replica's two stores.
struct Own<'a> {
    dir: &'a Path,
    engine: Arc<dyn Engine>,
    log: RegionLog,
    region: &'a Region,
}

/// After a power loss any of the batches may be missing that were written to the data since its last sync, with later
/// ones there: the applied index in the data says what was applied, and not that all of it is left. So the log is applied
/// again from where the data is known to be whole. An entry says what keys are afterwards, not what is done to
/// them, so data that has some of the entries becomes what it would be without them, as soon as the last of them is
/// applied again. Nobody reads before: a replica serves no read until it has applied an entry of the term in which it
/// leads, and that one is behind all of them.
fn recover_region(
    config: &Config,
    own: Own<'_>,
    transport: Option<Arc<dyn Transport>>,
    observer: &Observer,
) -> Result<RecoveredRegion, OpenError> {
    let Own { dir, engine, log, region } = own;
    let corrupt = |what: String| OpenError::Corrupt { path: dir.to_owned(), what };
    let in_data = |error: Error| corrupt(error.to_string());
    let staging = Arc::new(Staging::new(Arc::clone(&engine)));
    let installed = install(&*engine, &staging).map_err(in_data)?;
    let data = engine.snapshot();
    let seen = ApplyState::load(&*data).map_err(in_data)?.index;
    let synced = Number::Synced.load(&*data).map_err(in_data)?.unwrap_or(0);
    if synced > seen {
        return Err(corrupt(format!("the data was synced up to entry {synced} and has those up to {seen}")));
    }
    let saved = load_membership(&*data).map_err(in_data)?;
    let is_new = saved.is_none();
    let membership = saved.unwrap_or_else(|| Membership::first(voters(&config.voters)));
    let members = membership.members.clone();
    // A start that applies the log again takes the applied index back for a while; the members stay those of a later entry.
    let seen = seen.max(membership.index);
    if transport.is_none() && members != voters(&[config.replica_id]) {
        if is_new {
            return Err(OpenError::Config(ConfigError {
                field: "voters",
                value: format!("{:?}", config.voters),
                range: format!("[{}], the list for a store without a transport", config.replica_id),
            }));
        }
        return Err(corrupt(
            "its replica is one of several, and it was opened without a transport".to_owned(),
        ));
    }
    identify(&*engine, config.replica_id).map_err(in_data)?;
    let log = match &installed {
        Some(manifest) => LogStorage::open_after_snapshot(log, members, manifest.position),
        None => LogStorage::open(log, members, seen),
    };
    let mut log = log.map_err(|error| corrupt(format!("log beside data applied up to {seen}: {error}")))?;
    match &installed {
        Some(manifest) => staging.finish(manifest),
        None => staging.clear(),
    }
    .map_err(|error| in_data(error.into()))?;
    let synced = installed.map_or(synced, |new| new.position.index);
    let Position { index, term } = log.apply_behind(if planted!(TrustsAppliedIndex) { seen } else { synced });
    let state = ApplyState { index, term };
    let epoch = RegionEpoch { conf_ver: membership.conf_ver, ..RegionEpoch::default() };
    let current = CurrentRegion { region: region.clone(), epoch };
    let delegate = Delegate::new(region.id, state, membership, is_new);
    let applied = Arc::new(AtomicU64::new(state.index));
    log.set_snapshots(Snapshots::new(Arc::clone(&engine), Arc::clone(&staging), Arc::clone(&applied)));
    let truncated = log.truncated_index();
    let node = RawNode::new(&raft_config(config, state), log, &slog_to_tracing())
        .map_err(|error| corrupt(format!("raft refuses the log: {error}")))?;
    let lease = LeaseTracker::new(config.lease());
    let transport = transport.unwrap_or_else(|| Arc::new(Nobody));
    let outside = Outside { transport, observer: observer.clone() };
    let peer = Peer::new(current, node, lease, config.max_apply_bytes, clock::now(), outside);
    Ok(RecoveredRegion { peer, delegate, data: RegionData { engine, applied }, truncated, staging })
}

/// Installs a snapshot that was complete when the last process ended, however far that had come with it. Data that is
/// behind it never needed it.
fn install(engine: &dyn Engine, staging: &Staging) -> Result<Option<Manifest>, Error> {
    let applied = ApplyState::load(&*engine.snapshot())?.index;
    let manifest = staging.manifest()?.filter(|manifest| applied <= manifest.position.index);
    manifest.iter().try_for_each(|manifest| staging.install(manifest))?;
    Ok(manifest)
}

/// A membership of these voters and nobody else.
fn voters(ids: &[u64]) -> ConfState {
    ConfState { voters: ids.to_vec(), ..ConfState::default() }
}

/// How raft is set up.
pub(crate) fn raft_config(config: &Config, state: ApplyState) -> raft::Config {
    raft::Config {
        id: config.replica_id,
        election_tick: config.election_ticks,
        heartbeat_tick: config.heartbeat_ticks,
        applied: state.index,
        max_size_per_msg: config.max_apply_bytes,
        max_committed_size_per_ready: config.max_apply_bytes,
        max_inflight_msgs: 256,
        check_quorum: true,
        pre_vote: true,
        // What was proposed together leaves together, and is acknowledged together.
        batch_append: true,
        // Followers hear of a commit with the next entries, or with a heartbeat, and of a change of members at once.
        skip_bcast_commit: true,
        ..raft::Config::default()
    }
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
