use super::*;
use crate::{
    command::{RawGet, Response},
    error::Cause,
    raftstore::log_storage::MemoryLog,
    scheduler::task::{Phase, Reply, Task, TaskContext},
};
use raft::eraftpb::{ConfState, Message, MessageType};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// What a caller was told.
type Heard = Arc<Mutex<Vec<Reply>>>;

fn task(hashes: &[u64]) -> (Task, Heard) {
    let heard = Heard::default();
    let context = TaskContext {
        cid: 1,
        hashes: hashes.into(),
        deadline: Instant::now() + Duration::from_secs(60),
        bytes: 1,
        phase: Phase::default(),
    };
    let hears = Arc::clone(&heard);
    (Task::new(context, move |reply| hears.lock().unwrap().push(reply)), heard)
}

fn proposal(term: u64) -> (Proposal, Heard) {
    let (task, heard) = task(&[1]);
    (Proposal { task, term: Some(term), data: vec![1], response: Response::Done }, heard)
}

fn read() -> (Job, Heard) {
    let (task, heard) = task(&[]);
    (Job { task, command: RawGet { key: b"k".to_vec() }.into() }, heard)
}

/// One of three voters, whose two fellows are this test.
fn follower() -> Peer {
    let voters = ConfState { voters: vec![1, 2, 3], ..ConfState::default() };
    let log = LogStorage::open(Box::new(MemoryLog::default()), voters, 0).unwrap();
    let config = raft::Config {
        id: 1,
        election_tick: 10,
        heartbeat_tick: 2,
        check_quorum: true,
        ..Default::default()
    };
    let node = RawNode::new(&config, log, &crate::raft_log::slog_to_tracing()).unwrap();
    Peer::new(node, LeaseTracker::new(Duration::from_millis(80)), usize::MAX, Observer::default())
}

fn message(kind: MessageType, from: u64, term: u64) -> Message {
    let mut message = Message { from, to: 1, term, ..Message::default() };
    message.set_msg_type(kind);
    message
}

fn round(peer: &mut Peer) -> Effects {
    let mut effects = Effects::default();
    peer.round(&mut effects).unwrap();
    effects
}

/// Wins an election in term 1; its first entry is not replicated yet.
fn fresh_leader() -> Peer {
    let mut peer = follower();
    peer.node.campaign().unwrap();
    round(&mut peer);
    peer.node.step(message(MessageType::MsgRequestVoteResponse, 2, 1)).unwrap();
    round(&mut peer);
    assert_eq!(peer.leads, Some(1));
    peer
}

fn acknowledge_append(peer: &mut Peer, index: u64) -> Effects {
    let mut answer = message(MessageType::MsgAppendResponse, 2, 1);
    answer.index = index;
    peer.node.step(answer).unwrap();
    round(peer)
}

fn apply_through(peer: &mut Peer, index: u64) -> Effects {
    let mut effects = Effects::default();
    peer.applied(ApplyRes { index, term: 1, bytes: 0 }, &mut effects);
    effects
}

/// A leader whose first entry is committed and applied.
fn leader() -> Peer {
    let mut peer = fresh_leader();
    assert_eq!(acknowledge_append(&mut peer, 1).apply.len(), 1);
    apply_through(&mut peer, 1);
    peer
}

fn depose(peer: &mut Peer) -> Effects {
    peer.node.step(message(MessageType::MsgHeartbeat, 3, 2)).unwrap();
    round(peer)
}

fn replies(effects: Effects) -> Vec<Reply> {
    effects.settled.into_iter().map(|settled| settled.reply.expect("peers tell nobody")).collect()
}

const NOT_LEADER: Reply = Outcome::NotExecuted(Error::NotLeader { leader: None });

#[test]
fn a_follower_and_a_candidate_refuse_and_say_who_leads() {
    let mut peer = follower();
    let mut effects = Effects::default();
    peer.propose(proposal(0).0, &mut effects);
    peer.read(read().0, &mut effects);
    peer.node.campaign().unwrap();
    round(&mut peer);
    peer.propose(proposal(1).0, &mut effects);
    peer.read(read().0, &mut effects);
    assert_eq!(replies(effects), [NOT_LEADER, NOT_LEADER, NOT_LEADER, NOT_LEADER]);

    depose(&mut peer);
    let mut effects = Effects::default();
    peer.propose(proposal(2).0, &mut effects);
    assert_eq!(replies(effects), [Outcome::NotExecuted(Error::NotLeader { leader: Some(3) })]);
}

#[test]
fn a_snapshot_of_another_term_is_never_proposed_on() {
    let mut peer = leader();
    let mut effects = Effects::default();
    peer.propose(proposal(7).0, &mut effects);
    assert_eq!(replies(effects), [NOT_LEADER]);
    assert_eq!(peer.node.raft.raft_log.last_index(), 1);
}

#[test]
fn what_was_decided_without_a_snapshot_is_proposed_in_whichever_term_this_replica_leads() {
    let blind = || Proposal { term: None, ..proposal(7).0 };
    let mut peer = leader();
    let mut effects = Effects::default();
    peer.propose(blind(), &mut effects);
    assert_eq!(replies(effects), []);
    assert_eq!(peer.node.raft.raft_log.last_index(), 2);

    depose(&mut peer);
    let mut effects = Effects::default();
    peer.propose(blind(), &mut effects);
    assert_eq!(replies(effects), [Outcome::NotExecuted(Error::NotLeader { leader: Some(3) })]);
    assert_eq!(peer.node.raft.raft_log.last_index(), 2);
}

#[test]
fn raft_drops_proposals_during_a_transfer_and_the_caller_hears_of_it() {
    let mut peer = leader();
    peer.node.transfer_leader(2);
    let mut effects = Effects::default();
    peer.propose(proposal(1).0, &mut effects);
    assert_eq!(replies(effects), [NOT_LEADER]);
}

#[test]
fn a_promise_of_not_executed_excludes_the_proposal() {
    let mut peer = leader();
    let (proposal, heard) = proposal(1);
    let _ = proposal.task.tell_early(Error::DeadlineExceeded, Cause::DeadlineExceeded);
    peer.propose(proposal, &mut Effects::default());
    assert_eq!(peer.node.raft.raft_log.last_index(), 1, "nothing was proposed");
    assert_eq!(*heard.lock().unwrap(), [Outcome::NotExecuted(Error::DeadlineExceeded)]);
}

#[test]
fn a_read_before_the_first_entry_is_committed_waits_instead_of_being_dropped() {
    let mut peer = fresh_leader();
    let (job, heard) = read();
    peer.read(job, &mut Effects::default());
    assert!(round(&mut peer).readable.is_empty());
    acknowledge_append(&mut peer, 1);
    let mut confirmation = message(MessageType::MsgHeartbeatResponse, 2, 1);
    confirmation.context = 1u64.to_be_bytes().to_vec();
    peer.node.step(confirmation).unwrap();
    assert!(round(&mut peer).readable.is_empty(), "confirmed, but its index is not applied");
    let effects = apply_through(&mut peer, 1);
    assert_eq!(effects.readable.len(), 1);
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn stepping_down_answers_everybody_whether_the_entry_was_replicated_or_not() {
    for replicated in [false, true] {
        let mut peer = leader();
        let mut effects = Effects::default();
        let (proposal, heard) = proposal(1);
        peer.propose(proposal, &mut effects);
        let (job, _) = read();
        peer.read(job, &mut effects);
        round(&mut peer);
        if replicated {
            let effects = acknowledge_append(&mut peer, 2);
            assert_eq!(effects.apply[0].proposals.len(), 1, "committed: apply knows its fate");
        }
        let settled = replies(depose(&mut peer));
        let not_leader = Outcome::NotExecuted(Error::NotLeader { leader: Some(3) });
        if replicated {
            assert_eq!(settled, [not_leader]);
        } else {
            assert_eq!(settled, [Outcome::Indeterminate(Cause::LeadershipLost), not_leader]);
        }
        // Whatever is dropped without an answer says so itself, once.
        drop(peer);
        assert!(heard.lock().unwrap().len() <= 1);
    }
}

#[test]
fn a_confirmation_and_a_role_change_in_one_ready_lose_no_read() {
    let mut peer = leader();
    let (job, _) = read();
    peer.read(job, &mut Effects::default());
    round(&mut peer);
    let mut confirmation = message(MessageType::MsgHeartbeatResponse, 2, 1);
    confirmation.context = 1u64.to_be_bytes().to_vec();
    peer.node.step(confirmation).unwrap();
    let effects = depose(&mut peer);
    assert_eq!(effects.readable.len() + effects.settled.len(), 1);
}

#[test]
fn a_confirmation_of_one_term_stays_of_that_term_in_a_later_one() {
    let mut peer = leader();
    peer.propose(proposal(1).0, &mut Effects::default());
    round(&mut peer);
    acknowledge_append(&mut peer, 2);
    let (job, _) = read();
    peer.read(job, &mut Effects::default());
    round(&mut peer);
    let mut confirmation = message(MessageType::MsgHeartbeatResponse, 2, 1);
    confirmation.context = 1u64.to_be_bytes().to_vec();
    peer.node.step(confirmation).unwrap();
    assert!(
        round(&mut peer).readable.is_empty(),
        "confirmed up to entry 2, of which apply knows nothing yet"
    );
    // Another one leads in term 2, and may have written meanwhile; this one leads again in term 3.
    depose(&mut peer);
    peer.node.campaign().unwrap();
    round(&mut peer);
    peer.node.step(message(MessageType::MsgRequestVoteResponse, 2, 3)).unwrap();
    round(&mut peer);
    assert_eq!(peer.leads, Some(3));
    let effects = apply_through(&mut peer, 2);
    let terms: Vec<_> = effects.readable.iter().map(|(_, term)| *term).collect();
    assert_eq!(terms, [1], "what comes of such an old snapshot must not be proposed in term 3");
}

#[test]
fn commits_and_a_role_change_in_one_ready_give_the_proposal_to_apply() {
    let mut peer = leader();
    peer.propose(proposal(1).0, &mut Effects::default());
    round(&mut peer);
    let mut answer = message(MessageType::MsgAppendResponse, 2, 1);
    answer.index = 2;
    peer.node.step(answer).unwrap();
    let effects = depose(&mut peer);
    assert_eq!(effects.apply.iter().map(|task| task.proposals.len()).sum::<usize>(), 1);
    assert!(effects.settled.is_empty(), "it is committed, so it is not indeterminate");
}

#[test]
fn an_isolated_leader_steps_down_and_answers() {
    let mut peer = leader();
    peer.propose(proposal(1).0, &mut Effects::default());
    let mut settled = Vec::new();
    for _ in 0..2 * 10 {
        peer.tick(Instant::now());
        settled.extend(replies(round(&mut peer)));
    }
    assert_eq!(settled, [Outcome::Indeterminate(Cause::LeadershipLost)]);
    assert_eq!(peer.lease(), None);
    let mut effects = Effects::default();
    peer.propose(proposal(1).0, &mut effects);
    assert_eq!(replies(effects), [NOT_LEADER], "new commands fail fast");
}

#[test]
fn a_heartbeat_is_no_acknowledgement_where_others_vote() {
    let mut peer = leader();
    peer.tick(Instant::now());
    assert_eq!(peer.lease(), None);
}
