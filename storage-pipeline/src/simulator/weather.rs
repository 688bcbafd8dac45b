//! What goes wrong, and when: faults drawn from the seed, each for a while. It only decides; the world does.

use std::time::Duration;

use crate::{
    members::{MemberChange, Members},
    simulator::{life::Room, network::Quality, random::Random},
};

/// A fault.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// A replica dies, and loses what was not synced.
    Crash { replica: u64 },
    /// A replica is closed in good order.
    Close { replica: u64 },
    /// Replicas that are down start again.
    Restart,
    /// The link from one replica to another is cut.
    CutLink { from: u64, to: u64 },
    /// A replica is cut off from all others.
    Isolate { replica: u64 },
    /// Links mend.
    Heal,
    /// The network loses, doubles and delays.
    Network(Quality),
    /// A room of a replica stands still, or all of them.
    Hold { replica: u64, room: Option<Room>, length: Duration },
    /// The next write or sync of a disk fails.
    DiskFails { replica: u64 },
    /// The leader asks another one to take over.
    Transfer { to: u64 },
    /// The leader is asked to change the members.
    Members { changes: Vec<MemberChange> },
    /// The wall clocks of the clients jump.
    WallClock { ahead_ms: i64 },
}

impl Fault {
    /// The kind, for the count of faults.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Crash { .. } => "crashes",
            Self::Close { .. } => "closes",
            Self::Restart => "restarts",
            Self::CutLink { .. } => "links cut one way",
            Self::Isolate { .. } => "replicas isolated",
            Self::Heal => "links mended",
            Self::Network(_) => "network changes",
            Self::Hold { .. } => "pauses",
            Self::DiskFails { .. } => "disk faults",
            Self::Transfer { .. } => "leader transfers",
            Self::Members { .. } => "wishes for other members",
            Self::WallClock { .. } => "wall clock jumps",
        }
    }
}

/// What the weather depends on.
pub(super) struct Sight {
    pub(super) replicas: u64,
    pub(super) leader: Option<u64>,
    /// Who belongs to the group, as far as its leader knows.
    pub(super) members: Members,
    /// How many replicas are down.
    pub(super) down: u64,
    /// Whether a link is cut.
    pub(super) is_cut: bool,
}

/// The next faults, each with the time until it since the one before.
pub(super) fn next(random: &mut Random, sight: &Sight) -> Vec<(Duration, Fault)> {
    match sight.leader {
        Some(leader) if sight.replicas > 1 && random.one_in(4) => spell(random, sight, leader),
        _ => vec![fault(random, sight)],
    }
}

/// Faults that do harm only together, in an order and at distances that would seldom come about by themselves.
fn spell(random: &mut Random, sight: &Sight, leader: u64) -> Vec<(Duration, Fault)> {
    let replicas = sight.replicas;
    let ms = |random: &mut Random, from: u64, to: u64| {
        random.between(Duration::from_millis(from), Duration::from_millis(to))
    };
    let step = random.below(replicas as usize - 1) as u64;
    let follower = 1 + (leader + step) % replicas;
    let hold = |room, length| Fault::Hold { replica: leader, room: Some(room), length };
    let at_once = Duration::ZERO;
    match random.below(6) {
        // A leader does not hear that another one was elected.
        0 => vec![(ms(random, 2, 40), hold(Room::Raftstore, ms(random, 100, 300)))],
        // Nor that the one whom it told to take over was.
        1 => vec![
            (ms(random, 2, 40), Fault::Transfer { to: follower }),
            (ms(random, 0, 3), hold(Room::Raftstore, ms(random, 30, 100))),
        ],
        // Leadership goes and comes back while a worker thinks.
        2 => vec![
            (ms(random, 2, 40), hold(Room::Worker, ms(random, 150, 400))),
            (ms(random, 5, 40), Fault::Transfer { to: follower }),
            (ms(random, 20, 80), Fault::Transfer { to: leader }),
        ],
        // A follower that comes back needs a snapshot, and the leader's apply stands still.
        3 => vec![
            (ms(random, 2, 20), Fault::CutLink { from: leader, to: follower }),
            (at_once, Fault::CutLink { from: follower, to: leader }),
            (ms(random, 40, 150), hold(Room::Apply, ms(random, 20, 60))),
            (ms(random, 1, 5), Fault::Heal),
        ],
        // A follower loses its vote, or gets one, while its apply stands still, and then needs a snapshot that knows better.
        4 => {
            let is_voter = sight.members.voters.contains(&follower);
            let place = |votes| match votes {
                true => Fault::Members { changes: vec![MemberChange::AddVoter(follower)] },
                false => Fault::Members { changes: vec![MemberChange::AddLearner(follower)] },
            };
            let length = ms(random, 200, 400);
            vec![
                (ms(random, 2, 20), Fault::Hold { replica: follower, room: Some(Room::Apply), length }),
                (at_once, place(!is_voter)),
                (ms(random, 8, 25), Fault::CutLink { from: leader, to: follower }),
                (at_once, Fault::CutLink { from: follower, to: leader }),
                (ms(random, 1, 10), place(is_voter)),
                (ms(random, 40, 120), Fault::Heal),
            ]
        }
        // A voter that heard of the leader a moment ago forgets it, and another one, who has not, asks for its vote.
        _ => {
            let voter = 1 + (leader + (step + 1) % (replicas - 1)) % replicas;
            vec![
                (ms(random, 2, 40), Fault::CutLink { from: leader, to: follower }),
                (at_once, Fault::CutLink { from: follower, to: leader }),
                (ms(random, 40, 160), hold(Room::Raftstore, ms(random, 30, 80))),
                (at_once, Fault::Crash { replica: voter }),
                (at_once, Fault::Restart),
            ]
        }
    }
}

/// A fault by itself.
fn fault(random: &mut Random, sight: &Sight) -> (Duration, Fault) {
    let &Sight { replicas, leader, down, is_cut, ref members } = sight;
    // A group without a quorum does nothing that could be wrong: it must not last.
    if down * 2 >= replicas && !random.one_in(4) {
        return (random.between(Duration::from_millis(1), Duration::from_millis(60)), Fault::Restart);
    }
    if is_cut && random.one_in(3) {
        return (random.between(Duration::from_millis(40), Duration::from_millis(250)), Fault::Heal);
    }
    let pause = random.between(Duration::from_millis(2), Duration::from_millis(90));
    // Who leads has the most to lose.
    let victim = match leader {
        Some(leader) if random.one_in(2) => leader,
        _ => 1 + random.below(replicas as usize) as u64,
    };
    let other = 1 + random.below(replicas as usize) as u64;
    let fault = match random.below(23) {
        0..3 => Fault::Crash { replica: victim },
        3 => Fault::Close { replica: victim },
        4..7 => Fault::Restart,
        7 => Fault::CutLink { from: victim, to: other },
        8 => Fault::CutLink { from: other, to: victim },
        9..11 => Fault::Isolate { replica: victim },
        11..13 => Fault::Heal,
        13 => Fault::Network(Quality {
            loss_percent: random.below(30) as u32,
            double_percent: random.below(20) as u32,
            longest_delay: *random.pick(&[
                Duration::from_micros(300),
                Duration::from_millis(5),
                Duration::from_millis(60),
            ]),
        }),
        14..16 => {
            let room = *random.pick(&[
                None,
                None,
                Some(Room::Scheduler),
                Some(Room::Worker),
                Some(Room::Worker),
                Some(Room::Raftstore),
                Some(Room::Raftstore),
                Some(Room::Snapshots),
                Some(Room::Apply),
                Some(Room::Maintenance),
            ]);
            let length = random.between(Duration::from_millis(1), Duration::from_millis(400));
            Fault::Hold { replica: victim, room, length }
        }
        16 => Fault::DiskFails { replica: victim },
        17..19 => Fault::Transfer { to: other },
        19..22 if replicas > 1 => Fault::Members { changes: member_changes(random, replicas, members) },
        _ => Fault::WallClock { ahead_ms: random.below(20_000) as i64 - 10_000 },
    };
    (pause, fault)
}

/// A change of one replica's place, or of several at once.
fn member_changes(random: &mut Random, replicas: u64, members: &Members) -> Vec<MemberChange> {
    let first = random.below(replicas as usize) as u64;
    let count = *random.pick(&[1, 1, 2, 3]);
    let change = |id| {
        let (votes, learns) = (members.voters.contains(&id), members.learners.contains(&id));
        let (add, learn, remove) = (MemberChange::AddVoter, MemberChange::AddLearner, MemberChange::Remove);
        match (votes, learns) {
            (true, _) => random.pick(&[learn, remove])(id),
            (_, true) => random.pick(&[add, add, remove])(id),
            _ => random.pick(&[add, add, learn])(id),
        }
    };
    (first..first + count).map(|id| 1 + id % replicas).map(change).collect()
}
