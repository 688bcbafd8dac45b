//! Looks at what replicas have done and checks every invariant, at each step and at the end.

use std::{sync::atomic::Ordering, time::Duration};

use raft::eraftpb::ConfState;

use super::{Violation, World, violation};
use crate::{
    apply::{membership::Membership, state::load_membership},
    engine::Engine,
    maintenance::RegionData,
    observe::Moment,
    raftstore::peer::Peer,
    region::{FIRST_REGION, Region},
    simulator::{
        event::Event,
        invariants::{Acted, Claim, Deed, Log, Who, check_agreement},
        life::Life,
        node::Node,
        port::{Heard, beat},
    },
};

impl World {
    /// Looks at what a replica has done, and checks every invariant.
    pub(super) fn acted(&mut self, at: usize) -> Result<(), Violation> {
        let node = &self.nodes[at];
        let Some(life) = &node.life else { return Ok(()) };
        let who = Who { replica: node.id, life: node.lives };
        let mut deeds: Vec<_> = self.regions.all().iter().map(|_| Vec::new()).collect();
        let place = |region: u64| (region - FIRST_REGION) as usize;
        for event in node.take_events() {
            match event {
                Event::Sent(region, message) => {
                    self.network.send(region, message, self.now.get(), &mut self.random);
                }
                Event::SentChunk(chunk) => self.network.send_chunk(chunk, self.now.get(), &mut self.random),
                Event::Moment(moment) => {
                    self.report.snapshots += u64::from(matches!(moment, Moment::SnapshotInstalling { .. }));
                    let command = moment.cid().and_then(|cid| self.cids.get(&(who, cid)).copied());
                    self.trace.line(self.now.get(), || {
                        format!("replica {}: {moment:?} ({command:?})", who.replica)
                    });
                    let of_command = command.and_then(|command| self.operations.get(&command));
                    let region = moment.region().or(of_command.map(|operation| operation.region));
                    deeds[place(region.unwrap_or(FIRST_REGION))].push(Deed::Moment(moment, command));
                }
                Event::MembersTold(region, outcome) => {
                    let now = self.now.get();
                    self.trace.line(now, || format!("region {region}: told of its members: {outcome:?}"));
                    self.members_told[place(region)] = Some(outcome);
                }
                Event::Told { operation, reply } => {
                    self.trace.line(self.now.get(), || format!("told {operation}: {reply:?}"));
                    let mut region = FIRST_REGION;
                    if let Some(told) = self.operations.get_mut(&operation) {
                        told.replies += 1;
                        region = told.region;
                    }
                    let client = &mut self.clients[self.owners[&operation].0];
                    if client.waits_for == Some(operation) {
                        client.waits_for = None;
                        *client.port.heard.borrow_mut() =
                            Some((Heard::Told(reply.clone()), beat(&self.beats)));
                    }
                    deeds[place(region)].push(Deed::Told { operation, reply });
                }
            }
        }
        let fault = life.rooms.scheduler.fault();
        if let Some(fault) = fault
            && !(node.may_fail && fault.contains("injected"))
        {
            return Err(violation("no fault of its own", format!("replica {}: {fault}", node.id)));
        }
        let is_broken = fault.is_some();
        for (region, deeds) in (FIRST_REGION..).zip(deeds) {
            self.region_acted(at, region, &deeds, is_broken)?;
        }
        Ok(())
    }

    /// Checks the invariants of one region. Raft promises nothing of a replica whose log has failed.
    fn region_acted(
        &mut self,
        at: usize,
        region: u64,
        deeds: &[Deed],
        is_broken: bool,
    ) -> Result<(), Violation> {
        let (node, place) = (&self.nodes[at], (region - FIRST_REGION) as usize);
        let Some(life) = &node.life else { return Ok(()) };
        let peer = life.peer(region);
        let (new_entries, unchanged_below) = follow_log(&mut self.logs[at][place], peer)
            .map_err(|error| violation("the log can be read", format!("replica {}: {error}", node.id)))?;
        let now = self.now.get();
        let claims: Vec<_> = self.nodes.iter().filter_map(|node| claim(node, region, now)).collect();
        let has_applied = deeds.iter().any(|deed| matches!(deed, Deed::Moment(Moment::Applied { .. }, _)));
        let membership = if has_applied { members(node, region)? } else { None };
        let acted = Acted {
            who: Who { replica: node.id, life: node.lives },
            deeds,
            operations: &self.operations,
            peer,
            membership: membership.as_ref(),
            applied: life.data(region).1,
            new_entries: &new_entries,
            unchanged_below,
            log: &self.logs[at][place],
            claims: &claims,
        };
        let of_raft = if is_broken { &mut [] } else { self.of_raft[place].as_mut_slice() };
        for invariant in self.of_commands[place].iter_mut().chain(of_raft) {
            let held = invariant.acted(&acted);
            held.map_err(|what| violation(invariant.name(), format!("region {region}: {what}")))?;
        }
        Ok(())
    }

    pub(super) fn is_at_rest(&self) -> bool {
        let at_rest = |region: &Region| self.region_at_rest(region.id).unwrap_or(false);
        self.regions.all().iter().all(at_rest) && self.nodes.iter().all(is_quiescent)
    }

    /// Whether all replicas have applied all that the leader has committed.
    fn region_at_rest(&self, region: u64) -> Option<bool> {
        let committed = |node: &Node| {
            let life = node.life.as_ref()?;
            Some((life.peer(region).raft().raft_log.committed, life.data(region).1))
        };
        let goal = committed(&self.nodes[self.leader(region)? as usize - 1])?;
        Some(goal.0 == goal.1 && self.nodes.iter().all(|node| committed(node) == Some(goal)))
    }

    pub(super) fn check_the_end(&self) -> Result<(), Violation> {
        let history = self.history.borrow().check();
        history.map_err(|what| violation("linearizability", what))?;
        let first = self.nodes[0].disk.data.snapshot();
        let ledger = self.ledger.borrow().check(&*first);
        ledger.map_err(|what| violation("snapshot isolation", what))?;
        for node in &self.nodes[1..] {
            let agreed = check_agreement(&*first, &*node.disk.data.snapshot());
            agreed.map_err(|what| violation("agreement", format!("replicas 1 and {}: {what}", node.id)))?;
        }
        Ok(())
    }
}

impl Life {
    /// A region's peer.
    pub(super) fn peer(&self, region: u64) -> &Peer {
        &self.rooms.store.regions[(region - FIRST_REGION) as usize].peer
    }

    /// The part of the data that is a region's, and its applied index.
    pub(super) fn data(&self, region: u64) -> (&dyn Engine, u64) {
        let RegionData { engine, applied } =
            &self.rooms.maintenance.regions[(region - FIRST_REGION) as usize];
        // ORDERING: Acquire, for the Release of apply, as everybody reads it.
        (&**engine, applied.load(Ordering::Acquire))
    }
}

/// The membership of a region in the data of a replica that lives.
pub(super) fn members(node: &Node, region: u64) -> Result<Option<Membership>, Violation> {
    let Some(life) = &node.life else { return Ok(None) };
    let loaded = load_membership(&*life.data(region).0.snapshot());
    loaded.map_err(|error| violation("the data can be read", format!("replica {}: {error}", node.id)))
}

/// What a replica believes of itself at this moment of the cluster's time.
fn claim(node: &Node, region: u64, now: Duration) -> Option<Claim> {
    let life = node.life.as_ref()?;
    Some(Claim {
        replica: node.id,
        leads: life.peer(region).led_term(),
        reads: life.rooms.scheduler.reader.of(region).lease.term_at(node.time(now)),
        applied: life.data(region).1,
    })
}

fn is_quiescent(node: &Node) -> bool {
    node.life.as_ref().is_some_and(|life| {
        let scheduler = &life.rooms.scheduler;
        scheduler.in_flight.counts() == (0, 0)
            && scheduler.latches.counts() == (0, 0)
            && scheduler.own.is_empty()
            && scheduler.workers.is_empty()
    })
}

/// Says where a replica stands.
pub(super) fn state(node: &Node) -> String {
    let Some(life) = &node.life else { return format!("replica {} is down", node.id) };
    let scheduler = &life.rooms.scheduler;
    let region = |region: &Region| {
        let raft = life.peer(region.id).raft();
        format!(
            "; region {}: {:?} of term {}, members {}, last {}, committed {}, applied {}",
            region.id,
            raft.state,
            raft.term,
            words(&raft.prs().conf().to_conf_state()),
            raft.raft_log.last_index(),
            raft.raft_log.committed,
            life.data(region.id).1,
        )
    };
    let regions: String = scheduler.regions.all().iter().map(region).collect();
    let (in_flight, latches) = (scheduler.in_flight.counts(), scheduler.latches.counts());
    format!("replica {}: in flight {in_flight:?}, latches {latches:?}{regions}", node.id)
}

/// Says who belongs to a group.
fn words(members: &ConfState) -> String {
    let ConfState { voters, learners, voters_outgoing, learners_next, .. } = members;
    format!("{voters:?} learners {learners:?} outgoing {voters_outgoing:?} then learners {learners_next:?}")
}

/// Brings what is known of a log up to date. Returns the entries that are new, and the index below which nothing changed.
fn follow_log(known: &mut Log, peer: &Peer) -> Result<(Vec<raft::eraftpb::Entry>, u64), raft::Error> {
    let log = &peer.raft().raft_log;
    let (first, last) = (log.first_index() - 1, log.last_index());
    let mut same = last.min(known.first + (known.terms.len() as u64).saturating_sub(1));
    while same > first && known.term(same) != Some(log.term(same)?) {
        same -= 1;
    }
    // A snapshot may begin the log anew behind an entry that was there, of another term.
    let is_kept = known.first <= first && same >= first && known.term(same) == Some(log.term(same)?);
    let from = if is_kept { same } else { first };
    let new = if from < last { peer.entries(from + 1, last + 1)? } else { Vec::new() };
    let mut terms: Vec<u64> = match is_kept {
        true => known.terms[(first - known.first) as usize..=(same - known.first) as usize].to_vec(),
        false => vec![log.term(first)?],
    };
    terms.extend(new.iter().map(|entry| entry.term));
    *known = Log { first, terms };
    Ok((new, from + 1))
}
