//! What can happen next, and what a client or a message that arrives does.

use std::{
    task::{Context, Waker},
    time::Duration,
};

use super::{Client, Violation, World};
use crate::{
    raftstore::{
        snapshot::SnapshotChunk,
        transport::{self, Message},
    },
    region::FIRST_REGION,
    simulator::{
        event::Event,
        invariants::{Operation, Who},
        life::Room,
        network::Parcel,
        port::{Heard, beat},
    },
};

/// What can happen next.
#[derive(Clone, Copy)]
enum Action {
    Turn(usize, Room),
    Arrival,
    Client(usize),
    Weather,
}

impl World {
    pub(super) fn step(&mut self) -> Result<(), Violation> {
        let actions = self.actions();
        if actions.is_empty() {
            let next = self.next_timer();
            self.now.set(next.max(self.now.get() + Duration::from_micros(1)));
            return Ok(());
        }
        self.report.steps += 1;
        let action = *self.random.pick(&actions);
        let pause = self.random.between(Duration::ZERO, Duration::from_micros(60));
        match action {
            Action::Turn(at, room) => {
                let now = self.now.get();
                self.trace.line(now, || format!("replica {}: turn of {room:?}", at + 1));
                self.nodes[at].turn(room, now, &mut self.random);
                self.acted(at)?;
                if self.nodes[at].is_closed() {
                    self.end_life(at, "closed")?;
                    if self.is_calm {
                        self.start(at)?;
                    }
                }
            }
            Action::Arrival => self.deliver(),
            Action::Client(at) => self.poll(at)?,
            Action::Weather => self.weather()?,
        }
        self.now.set(self.now.get() + pause);
        Ok(())
    }

    fn actions(&self) -> Vec<Action> {
        let now = self.now.get();
        let turns = self.nodes.iter().enumerate();
        let turns =
            turns.flat_map(|(at, node)| node.ready(now).into_iter().map(move |room| Action::Turn(at, room)));
        let clients = self.clients.iter().enumerate().filter(|(_, client)| is_ready(client, now));
        let mut actions: Vec<_> = turns.chain(clients.map(|(at, _)| Action::Client(at))).collect();
        if self.network.next_arrival().is_some_and(|arrives| arrives <= now) {
            actions.push(Action::Arrival);
        }
        if self.next_fault.as_ref().is_some_and(|(due, _)| *due <= now) {
            actions.push(Action::Weather);
        }
        actions
    }

    /// When something can happen again.
    fn next_timer(&self) -> Duration {
        let now = self.now.get();
        let nodes = self.nodes.iter().filter_map(|node| node.next_timer(now));
        let clients = self.clients.iter().filter(|client| !client.is_done);
        let clients = clients
            .filter(|client| client.waits_for.is_none())
            .filter_map(|client| client.port.wakes_at.get());
        let fault = self.next_fault.iter().map(|(due, _)| *due);
        let next = nodes.chain(clients).chain(self.network.next_arrival()).chain(fault).min();
        next.unwrap_or(now + Duration::from_millis(1))
    }

    fn deliver(&mut self) {
        let now = self.now.get();
        match self.network.arrived(now) {
            Some(Parcel::Message(region, message)) => self.deliver_message(region, *message),
            Some(Parcel::Chunk(chunk)) => self.deliver_chunk(&chunk),
            None => {}
        }
    }

    fn deliver_chunk(&mut self, chunk: &SnapshotChunk) {
        let SnapshotChunk { region, from, to, sending, number, position, .. } = *chunk;
        let Some(life) = &self.nodes[to as usize - 1].life else { return };
        self.trace.line(self.now.get(), || {
            format!("region {region}, {from} -> {to}: chunk {number} of {position:?}, {sending:?}")
        });
        // One that is not kept is missed when the snapshot is to be installed.
        let _ = life.rooms.appliers[0].regions[(region - FIRST_REGION) as usize].staging.stage(chunk);
    }

    fn deliver_message(&mut self, region: u64, message: Message) {
        let now = self.now.get();
        let node = &self.nodes[message.to as usize - 1];
        let Some(life) = &node.life else { return };
        self.trace.line(now, || format!("region {region}, {}", words(&message)));
        if transport::check(&message, node.id).is_ok() {
            // A full mailbox loses it, and raft sends it again.
            let _ = life.rooms.scheduler.reader.of(region).router.raft(message);
        }
    }

    /// Lets a client go on, and takes the command that it sends.
    fn poll(&mut self, at: usize) -> Result<(), Violation> {
        let client = &mut self.clients[at];
        client.port.wakes_at.set(None);
        client.is_done = client.doing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        let Some(asked) = client.port.asked.take() else { return Ok(()) };
        let number = self.operations.len() as u64 + 1;
        let (now, to) = (self.now.get(), asked.replica as usize - 1);
        self.trace.line(now, || format!("client {at} -> {}: {number} {:?}", asked.replica, asked.command));
        let node = &self.nodes[to];
        let Some(life) = &node.life else {
            *client.port.heard.borrow_mut() = Some((Heard::NobodyThere, beat(&self.beats)));
            return Ok(());
        };
        let who = Who { replica: node.id, life: node.lives };
        client.waits_for = Some(number);
        let hashes = asked.command.latch_hashes();
        let region = self.regions.of_command(&asked.command, None).expect("it was asked for one region");
        self.operations.insert(number, Operation { region, hashes, replies: 0, lost: false });
        self.owners.insert(number, (at, who));
        node.give_time(now);
        let (deadline, events) = (node.time(now) + asked.timeout, life.events.clone());
        let before = life.rooms.scheduler.next_cid();
        self.cids.insert((who, before), number);
        life.rooms.scheduler.submit(asked.command, None, deadline, move |reply| {
            events.push(Event::Told { operation: number, reply });
        });
        self.acted(to)
    }
}

fn is_ready(client: &Client, now: Duration) -> bool {
    if client.is_done || client.waits_for.is_some() {
        return false;
    }
    client.port.heard.borrow().is_some() || client.port.wakes_at.get().is_none_or(|wakes| wakes <= now)
}

/// A message in a line of a trace.
fn words(message: &Message) -> String {
    let Message { from, to, term, index, log_term, commit, reject, reject_hint, ref entries, .. } = *message;
    let kind = message.get_msg_type();
    let place =
        format!("term {term}, behind {index} of {log_term}, {} entries, committed {commit}", entries.len());
    let refuses = if reject { format!(", refused, has {reject_hint}") } else { String::new() };
    format!("{from} -> {to}: {kind:?} {place}{refuses}")
}
