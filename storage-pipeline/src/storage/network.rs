//! A network between replicas in one process, whose links can be cut, slowed down and healed: for tests, examples and
//! embedded groups.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{
    mailbox::{Mailbox, Received},
    raftstore::{
        router::Router,
        snapshot::SnapshotChunk,
        staging::Staging,
        transport::{self, Message, MessageRefused, Transport},
    },
    region::FIRST_REGION,
};

/// Links from replica to replica. Clones share them. A link is one direction between two replicas and is named by both
/// ids; what is sent over a link that is cut, or finds no room at its end, is lost.
#[derive(Clone, Default)]
pub struct Network(Arc<Shared>);

#[derive(Default)]
struct Shared {
    links: Arc<Mutex<Links>>,
    lost: AtomicU64,
    slow: Mailbox<Late>,
    postman: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Links {
    members: HashMap<u64, Member>,
    cut: HashSet<(u64, u64)>,
    isolated: HashSet<u64>,
    delays: HashMap<(u64, u64), Duration>,
}

/// What can be reached of a replica: one for each region.
type Member = Vec<Inbox>;

/// What can be reached of one region of a replica.
struct Inbox {
    router: Router,
    staging: Weak<Staging>,
}

/// A message on a slow link.
struct Late {
    due: Instant,
    region: u64,
    message: Message,
}

impl Links {
    /// Who gets what one replica sends to another about a region, if anybody does.
    fn end(&self, region: u64, from: u64, to: u64) -> Option<&Inbox> {
        let is_cut =
            self.cut.contains(&(from, to)) || self.isolated.contains(&from) || self.isolated.contains(&to);
        let at = usize::try_from(region.checked_sub(FIRST_REGION)?).ok()?;
        self.members.get(&to).filter(|_| !is_cut)?.get(at)
    }
}

impl Network {
    /// A network without members, all of whose links work.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cuts one direction between two replicas.
    pub fn cut(&self, from: u64, to: u64) {
        self.0.links.lock().cut.insert((from, to));
    }

    /// Cuts a replica off from all others, in both directions.
    pub fn isolate(&self, replica: u64) {
        self.0.links.lock().isolated.insert(replica);
    }

    /// Slows one direction between two replicas down. Messages keep their order as long as the delay is the same.
    pub fn delay(&self, from: u64, to: u64, by: Duration) {
        self.0.links.lock().delays.insert((from, to), by);
        let mut postman = self.0.postman.lock();
        if postman.is_none() {
            let (slow, links) = (self.0.slow.clone(), Arc::clone(&self.0.links));
            let thread = std::thread::Builder::new().name("postman".to_owned());
            match thread.spawn(move || deliver_late(&slow, &links)) {
                Ok(handle) => *postman = Some(handle),
                Err(error) => tracing::error!(%error, "no thread for slow links; they lose everything"),
            }
        }
    }

    /// Makes every link work at full speed again. What is under way on a slow one arrives in its time.
    pub fn heal(&self) {
        let mut links = self.0.links.lock();
        links.cut.clear();
        links.isolated.clear();
        links.delays.clear();
    }

    /// How many messages were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        // ORDERING: Relaxed; a count, from whenever it is.
        self.0.lost.load(Ordering::Relaxed)
    }

    /// What a replica sends goes over these links.
    pub(super) fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.clone())
    }

    /// Messages for this replica go there from now on.
    pub(super) fn join(&self, replica: u64, inboxes: Vec<(Router, Weak<Staging>)>) {
        let member = inboxes.into_iter().map(|(router, staging)| Inbox { router, staging }).collect();
        self.0.links.lock().members.insert(replica, member);
    }

    /// Messages for this replica are lost from now on.
    pub(super) fn leave(&self, replica: u64) {
        self.0.links.lock().members.remove(&replica);
    }
}

impl Transport for Network {
    fn send(&self, region: u64, messages: Vec<Message>) {
        let sent = messages.len();
        let links = self.0.links.lock();
        let now = Instant::now();
        let mut arriving = Vec::with_capacity(sent);
        let mut slow = 0;
        for message in messages {
            let Some(member) = links.end(region, message.from, message.to) else { continue };
            match links.delays.get(&(message.from, message.to)) {
                None => arriving.push((member.router.clone(), message)),
                // Only a network that was dropped refuses it, and nobody sends there.
                Some(delay) => {
                    slow += usize::from(self.0.slow.send(Late { due: now + *delay, region, message }).is_ok())
                }
            }
        }
        drop(links);
        let arrived = arriving.into_iter().filter_map(|(router, message)| deliver(&router, message)).count();
        // ORDERING: Relaxed; a statistic.
        self.0.lost.fetch_add((sent - slow - arrived) as u64, Ordering::Relaxed);
    }

    fn send_chunk(&self, chunk: SnapshotChunk) -> Result<(), MessageRefused> {
        let links = self.0.links.lock();
        let delay = links.delays.get(&(chunk.from, chunk.to)).copied().unwrap_or_default();
        let staging =
            links.end(chunk.region, chunk.from, chunk.to).and_then(|member| member.staging.upgrade());
        drop(links);
        let staging = staging.ok_or(MessageRefused::Unreachable)?;
        std::thread::sleep(delay);
        staging.stage(&chunk).map_err(|_| MessageRefused::NotKept)
    }
}

/// Hands a message to its replica. No lock is held.
fn deliver(router: &Router, message: Message) -> Option<()> {
    let to = message.to;
    transport::check(&message, to).and_then(|()| router.raft(message)).ok()
}

/// Runs until the network is gone.
fn deliver_late(slow: &Mailbox<Late>, links: &Mutex<Links>) {
    let mut arrived = VecDeque::new();
    let mut waiting: Vec<Late> = Vec::new();
    loop {
        let next = waiting.iter().map(|late| late.due).min();
        if slow.receive_all(&mut arrived, next) == Received::Closed {
            return;
        }
        waiting.extend(arrived.drain(..));
        // A stable sort: messages that are due at one moment keep their order.
        waiting.sort_by_key(|late| late.due);
        let now = Instant::now();
        let count = waiting.partition_point(|late| late.due <= now);
        for Late { region, message, .. } in waiting.drain(..count) {
            // A link may have been cut meanwhile.
            let router =
                links.lock().end(region, message.from, message.to).map(|member| member.router.clone());
            router.and_then(|router| deliver(&router, message));
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.slow.close();
        if let Some(handle) = self.postman.get_mut().take() {
            let _ = handle.join();
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = self.0.links.lock();
        let members: Vec<_> = links.members.keys().collect();
        f.debug_struct("Network").field("members", &members).field("cut", &links.cut).finish_non_exhaustive()
    }
}
