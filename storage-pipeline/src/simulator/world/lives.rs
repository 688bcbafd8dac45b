//! How replicas start and end, and the faults that befall them.

use std::{collections::BTreeSet, time::Duration};

use callback_slot::Callback;

use super::{Violation, World, violation, watch};
use crate::{
    members::{MemberChange, Members},
    raftstore::msg::ChangeMembers,
    region::FIRST_REGION,
    simulator::{
        event::Event,
        invariants::Who,
        life::Life,
        port::{Heard, beat},
        weather::{self, Fault, Sight},
    },
};

impl World {
    pub(super) fn start(&mut self, at: usize) -> Result<(), Violation> {
        self.trace.line(self.now.get(), || format!("replica {} starts", at + 1));
        let started = self.nodes[at].start(self.now.get(), &mut self.random);
        started.map_err(|error| violation("every replica starts again", error.to_string()))?;
        self.acted(at)
    }

    pub(super) fn crash(&mut self, at: usize) -> Result<(), Violation> {
        self.end_life(at, "crashed")?;
        self.nodes[at].disk.lose_power(&mut self.random);
        Ok(())
    }

    /// A replica is gone, and with it the commands that it had: nobody will tell their callers.
    pub(super) fn end_life(&mut self, at: usize, how: &str) -> Result<(), Violation> {
        let node = &mut self.nodes[at];
        let Some(life) = node.life.take() else { return Ok(()) };
        self.trace.line(self.now.get(), || format!("replica {} {how}", at + 1));
        let who = Who { replica: node.id, life: node.lives };
        let (commands, bytes) = life.rooms.scheduler.in_flight.counts();
        if how == "closed" && (commands, bytes) != (0, 0) {
            return Err(violation(
                "quiescence",
                format!("a closed replica has {commands} commands in flight"),
            ));
        }
        let fault = life.rooms.scheduler.fault().cloned();
        drop(life);
        if let Some(fault) = fault {
            self.trace.line(self.now.get(), || format!("it had stopped after a fault: {fault}"));
        }
        for client in &mut self.clients {
            let Some(number) = client.waits_for.filter(|number| self.owners[number].1 == who) else {
                continue;
            };
            if how == "closed" {
                return Err(violation(
                    "exactly once",
                    format!("a replica closed and left command {number} unanswered"),
                ));
            }
            client.waits_for = None;
            if let Some(operation) = self.operations.get_mut(&number) {
                operation.lost = true;
            }
            *client.port.heard.borrow_mut() = Some((Heard::Lost, beat(&self.beats)));
        }
        Ok(())
    }

    /// The replica that leads a region. Where one does not know yet that it was deposed, that is the one of the latest term.
    pub(super) fn leader(&self, region: u64) -> Option<u64> {
        let lives = self.nodes.iter().filter_map(|node| node.life.as_ref().map(|life| (node.id, life)));
        let leaders = lives.filter_map(|(id, life)| Some((life.peer(region).led_term()?, id)));
        leaders.max_by_key(|(term, _)| *term).map(|(_, id)| id)
    }

    pub(super) fn leading_life(&self, region: u64) -> Option<&Life> {
        self.nodes[self.leader(region)? as usize - 1].life.as_ref()
    }

    /// Asks a region's leader for other members.
    pub(super) fn change_members(&mut self, region: u64, changes: &[MemberChange]) {
        if let Some(leader) = self.leading_life(region) {
            let events = leader.events.clone();
            let callback = Callback::new(move |outcome| events.push(Event::MembersTold(region, outcome)));
            let wish = ChangeMembers { changes: changes.to_vec(), callback };
            // One for which there is no room is not fulfilled.
            let _ = leader.rooms.scheduler.reader.of(region).router.change_members(wish);
        }
    }

    /// Makes all replicas voters of every region again.
    pub(super) fn gather(&mut self, end: Duration) -> Result<(), Violation> {
        let all: BTreeSet<_> = (1..=self.nodes.len() as u64).collect();
        for region in self.region_ids() {
            while let Some(missing) = self.missing(region, &all)? {
                let pause = self.now.get() + Duration::from_millis(50);
                self.change_members(region, &[MemberChange::AddVoter(missing)]);
                self.until("all replicas are voters", end, |world| world.now.get() > pause)?;
            }
        }
        Ok(())
    }

    /// The first replica that does not vote, as the leader's data has it, or any where the members are joint, or where nobody
    /// knows: a leader that others have replaced does not, nor does one with entries that it has yet to apply.
    fn missing(&self, region: u64, all: &BTreeSet<u64>) -> Result<Option<u64>, Violation> {
        let lives = self.nodes.iter().filter_map(|node| node.life.as_ref());
        let newest = lives.map(|life| life.peer(region).raft().term).max();
        let knows = |leader: &u64| {
            self.nodes[*leader as usize - 1].life.as_ref().is_some_and(|life| {
                let raft = life.peer(region).raft();
                Some(raft.term) == newest && life.data(region).1 == raft.raft_log.last_index()
            })
        };
        let Some(leader) = self.leader(region).filter(knows) else { return Ok(all.first().copied()) };
        let membership = watch::members(&self.nodes[leader as usize - 1], region)?.unwrap_or_default();
        let members = Members::from(&membership.members);
        let missing = all.difference(&members.voters).next().copied();
        Ok(missing.or(members.outgoing.first().copied()))
    }

    /// Plans what goes wrong next.
    pub(super) fn plan_fault(&mut self) {
        if self.coming.is_empty() {
            self.stormy = FIRST_REGION + self.random.below(self.regions.all().len()) as u64;
            let leader = self.leader(self.stormy);
            let members = self.leading_life(self.stormy);
            let members = members.map(|life| life.peer(self.stormy).raft().prs().conf().to_conf_state());
            let sight = Sight {
                replicas: self.nodes.len() as u64,
                leader,
                members: members.as_ref().map(Members::from).unwrap_or_default(),
                down: self.nodes.iter().filter(|node| node.life.is_none()).count() as u64,
                is_cut: self.network.is_cut(),
            };
            self.coming.extend(weather::next(&mut self.random, &sight));
        }
        let now = self.now.get();
        self.next_fault = self.coming.pop_front().map(|(pause, fault)| (now + pause, fault));
    }

    pub(super) fn weather(&mut self) -> Result<(), Violation> {
        let Some((_, fault)) = self.next_fault.take() else { return Ok(()) };
        self.trace.line(self.now.get(), || format!("{fault:?}"));
        *self.report.faults.entry(fault.kind()).or_default() += 1;
        self.befall(&fault)?;
        self.plan_fault();
        Ok(())
    }

    fn befall(&mut self, fault: &Fault) -> Result<(), Violation> {
        let now = self.now.get();
        match *fault {
            Fault::Crash { replica } => self.crash(replica as usize - 1)?,
            Fault::Close { replica } => {
                let node = &mut self.nodes[replica as usize - 1];
                node.give_time(now);
                if let Some(life) = &mut node.life {
                    life.close();
                }
                self.acted(replica as usize - 1)?;
            }
            Fault::Restart => {
                for at in 0..self.nodes.len() {
                    let stopped = |life: &Life| life.rooms.scheduler.fault().is_some();
                    if self.nodes[at].life.as_ref().is_some_and(stopped) {
                        self.crash(at)?;
                    }
                    if self.nodes[at].life.is_none() {
                        self.start(at)?;
                    }
                }
            }
            Fault::CutLink { from, to } => self.network.cut(from, to),
            Fault::Isolate { replica } => {
                for other in 1..=self.nodes.len() as u64 {
                    self.network.cut(replica, other);
                    self.network.cut(other, replica);
                }
            }
            Fault::Heal => self.network.heal(),
            Fault::Network(quality) => self.network.set_quality(quality),
            Fault::Hold { replica, room, length } => {
                let held = &mut self.nodes[replica as usize - 1].held_until;
                match room {
                    Some(room) => held[room as usize] = now + length,
                    None => held.fill(now + length),
                }
            }
            Fault::DiskFails { replica } => {
                let node = &mut self.nodes[replica as usize - 1];
                if node.life.is_some() {
                    node.may_fail = true;
                    let what = node.disk.plan_fault(&mut self.random);
                    self.trace.line(now, || format!("at replica {replica} the next {what}"));
                }
            }
            Fault::Transfer { to } => {
                if let Some(leader) = self.leading_life(self.stormy) {
                    leader.rooms.scheduler.reader.of(self.stormy).router.transfer_leader(to);
                }
            }
            Fault::Members { ref changes } => self.change_members(self.stormy, changes),
            Fault::WallClock { ahead_ms } => self.wall_ahead_ms.set(ahead_ms),
        }
        Ok(())
    }
}
