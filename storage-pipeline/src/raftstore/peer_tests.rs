use super::*;
use crate::{
    apply::{
        membership::Membership,
        state::{ApplyState, save_membership},
    },
    command::{RawGet, Response},
    config::Config,
    engine::Engine,
    error::{Cause, Outcome},
    members::{MemberChange, MemberChangeRefused, Members},
    raftstore::{
        log_storage::{LogEngine, MemoryLog, Position},
        msg::ChangeMembers,
        snapshot::{Sending, SnapshotChunk, Snapshots, encode_sent},
        staging::Staging,
    },
    region::{CurrentRegion, Region, RegionEpoch},
    scheduler::{
        task::{Reply, Task, TaskContext},
        testing,
    },
    storage::recover::raft_config,
};
use raft::{
    StateRole,
    eraftpb::{ConfState, Message, MessageType},
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// What a caller was told.
type Heard = Arc<Mutex<Vec<Reply>>>;

fn task(hashes: &[u64]) -> (Task, Heard) {
    task_in(None, hashes)
}

fn task_in(epoch: Option<RegionEpoch>, hashes: &[u64]) -> (Task, Heard) {
    let heard = Heard::default();
    let context = TaskContext { epoch, ..testing::context(hashes) };
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

const LEASE: Duration = Duration::from_millis(80);

/// What a peer has sent.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<Message>>>);

impl Transport for Sent {
    fn send(&self, _: u64, messages: Vec<Message>) {
        self.0.lock().unwrap().extend(messages);
    }
}

impl Sent {
    /// The kinds of messages that were sent since the last time, in order.
    fn take(&self) -> Vec<MessageType> {
        self.0.lock().unwrap().drain(..).map(|message| message.get_msg_type()).collect()
    }
}

fn outside(transport: impl Transport) -> Outside {
    Outside { transport: Arc::new(transport), observer: Observer::default() }
}

fn first_region() -> CurrentRegion {
    let region = Region { id: 1, start_key: Vec::new(), end_key: Vec::new() };
    CurrentRegion { region, epoch: RegionEpoch::default() }
}

/// One of three voters, whose two fellows are this test.
fn voter(log: MemoryLog) -> (Peer, Sent) {
    let voters = ConfState { voters: vec![1, 2, 3], ..ConfState::default() };
    let log = LogStorage::open(Box::new(log) as Box<dyn LogEngine>, voters, 0).unwrap();
    let config = raft::Config {
        election_tick: 10,
        heartbeat_tick: 2,
        pre_vote: false,
        ..raft_config(&Config::new("nowhere"), ApplyState::default())
    };
    let node = RawNode::new(&config, log, &crate::raft_log::slog_to_tracing()).unwrap();
    let lease = LeaseTracker::new(LEASE);
    let sent = Sent::default();
    let peer = Peer::new(first_region(), node, lease, u64::MAX, Instant::now(), outside(sent.clone()));
    (peer, sent)
}

/// One of three voters, before anything has happened.
fn follower() -> Peer {
    voter(MemoryLog::default()).0
}

fn message(kind: MessageType, from: u64, term: u64) -> Message {
    let mut message = Message { from, to: 1, term, ..Message::default() };
    message.set_msg_type(kind);
    message
}

/// A snapshot at an index, in so many chunks, that replica 3 sends as the leader of term 2.
fn snapshot(index: u64, chunks: u64) -> Message {
    let conf_state = Some(ConfState { voters: vec![1, 2, 3], ..ConfState::default() });
    let metadata = Some(raft::eraftpb::SnapshotMetadata { conf_state, index, term: 2 });
    let snapshot = Some(raft::eraftpb::Snapshot { data: encode_sent(Sending::default(), chunks), metadata });
    Message { snapshot, ..message(MessageType::MsgSnapshot, 3, 2) }
}

fn round(peer: &mut Peer) -> Effects {
    let mut effects = Effects::default();
    peer.round(&mut effects).unwrap();
    effects
}

/// Wins an election in term 1; its first entry is not replicated yet.
fn fresh_leader() -> Peer {
    elect(follower())
}

fn elect(mut peer: Peer) -> Peer {
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

/// Another replica says that it has the log up to an index and knows that this is committed.
fn knows(peer: &mut Peer, from: u64, index: u64) -> Effects {
    peer.step(Message { index, commit: index, ..message(MessageType::MsgAppendResponse, from, 1) }).unwrap();
    round(peer)
}

fn apply_through(peer: &mut Peer, index: u64) -> Effects {
    let mut effects = Effects::default();
    peer.applied(ApplyRes { index, term: 1, bytes: 0, changes: Vec::new(), conf_ver: 1 }, &mut effects);
    effects
}

/// A leader whose first entry is committed and applied.
fn leader() -> Peer {
    settle_in(fresh_leader())
}

fn settle_in(mut peer: Peer) -> Peer {
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
fn what_is_proposed_in_one_round_leaves_in_one_message_and_its_commit_in_none_of_its_own() {
    let (peer, sent) = voter(MemoryLog::default());
    let mut peer = settle_in(elect(peer));
    peer.step(Message { index: 1, ..message(MessageType::MsgAppendResponse, 3, 1) }).unwrap();
    round(&mut peer);
    sent.take();
    let mut effects = Effects::default();
    (0..5).for_each(|_| peer.propose(proposal(1).0, &mut effects));
    round(&mut peer);
    let appends: Vec<_> =
        sent.0.lock().unwrap().drain(..).map(|message| (message.to, message.entries.len())).collect();
    assert_eq!(appends.len(), 2, "{appends:?}");
    assert!(appends.contains(&(2, 5)) && appends.contains(&(3, 5)), "{appends:?}");

    assert_eq!(acknowledge_append(&mut peer, 6).apply[0].proposals.len(), 5);
    assert_eq!(sent.take(), [], "the others hear of the commit with what comes next");
    peer.propose(proposal(1).0, &mut effects);
    round(&mut peer);
    assert!(sent.0.lock().unwrap().iter().all(|message| message.commit == 6));
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

fn confirm(peer: &mut Peer, question: u64) -> Effects {
    let mut answer = message(MessageType::MsgHeartbeatResponse, 2, 1);
    answer.context = question.to_be_bytes().to_vec();
    peer.node.step(answer).unwrap();
    round(peer)
}

#[test]
fn the_lease_runs_from_the_sending_of_the_round_that_a_quorum_answered() {
    let mut peer = leader();
    let started = Instant::now();
    peer.tick(started);
    round(&mut peer);
    assert_eq!(peer.lease(), None, "nobody has answered");
    for ticks in 1..4 {
        peer.tick(started + LEASE * ticks);
        round(&mut peer);
    }
    // Every second tick is a round; the second one left with the third tick.
    confirm(&mut peer, 2);
    assert_eq!(peer.lease().map(|lease| lease.until), Some(started + LEASE * 3));
    confirm(&mut peer, 1);
    assert_eq!(
        peer.lease().map(|lease| lease.until),
        Some(started + LEASE * 3),
        "an answer that was overtaken"
    );
}

#[test]
fn whoever_is_told_to_take_over_hears_of_it_after_the_lease_has_ended() {
    let (peer, sent) = voter(MemoryLog::default());
    let mut peer = settle_in(elect(peer));
    let now = Instant::now();
    peer.tick(now);
    round(&mut peer);
    confirm(&mut peer, 1);
    assert!(peer.lease().is_some());
    sent.take();

    peer.transfer_leader(2);
    let effects = round(&mut peer);
    assert!(!sent.take().contains(&MessageType::MsgTimeoutNow), "the lease is not withdrawn yet");
    let withheld: Vec<_> =
        effects.messages.iter().map(|message| (message.get_msg_type(), message.to)).collect();
    assert_eq!(withheld, [(MessageType::MsgTimeoutNow, 2)]);
    assert_eq!(peer.lease(), None);

    // Nothing comes of it: the replica leads on, and asks a quorum for each read of this term.
    for _ in 0..12 {
        peer.tick(now);
        round(&mut peer);
        peer.node.step(message(MessageType::MsgHeartbeatResponse, 2, 1)).unwrap();
    }
    let question = peer.reads.ask();
    confirm(&mut peer, question);
    assert_eq!((peer.leads, peer.lease()), (Some(1), None));
    let (job, _) = read();
    peer.read(job, &mut Effects::default());
    round(&mut peer);
    assert_eq!(confirm(&mut peer, question + 1).readable.len(), 1);
}

#[test]
fn a_restarted_voter_gives_no_vote_while_a_lease_that_it_forgot_can_last() {
    let log = MemoryLog::default();
    let (mut peer, _) = voter(log.clone());
    peer.step(message(MessageType::MsgHeartbeat, 3, 4)).unwrap();
    round(&mut peer);
    drop(peer);

    let (mut peer, sent) = voter(log);
    let ask = |peer: &mut Peer, kind| {
        peer.step(Message { index: 9, log_term: 4, ..message(kind, 2, 5) }).unwrap();
        round(peer);
    };
    for _ in 0..10 {
        ask(&mut peer, MessageType::MsgRequestPreVote);
        ask(&mut peer, MessageType::MsgRequestVote);
        assert_eq!(sent.take(), [], "whom it followed may still read under its lease");
        peer.tick(Instant::now());
        round(&mut peer);
        sent.take();
    }
    ask(&mut peer, MessageType::MsgRequestVote);
    assert_eq!(sent.take(), [MessageType::MsgRequestVoteResponse]);
}

#[test]
fn a_voter_that_was_never_in_a_term_has_promised_nothing() {
    let (mut peer, sent) = voter(MemoryLog::default());
    peer.step(message(MessageType::MsgRequestVote, 2, 1)).unwrap();
    round(&mut peer);
    assert_eq!(sent.take(), [MessageType::MsgRequestVoteResponse]);
}

/// Notes how many syncs the log had when each message was sent.
#[derive(Clone)]
struct Syncs(MemoryLog, Arc<Mutex<Vec<(MessageType, u64)>>>);

impl Transport for Syncs {
    fn send(&self, _: u64, messages: Vec<Message>) {
        let syncs = self.0.syncs();
        self.1.lock().unwrap().extend(messages.iter().map(|message| (message.get_msg_type(), syncs)));
    }
}

#[test]
fn votes_and_acknowledgements_follow_the_sync_and_a_leaders_entries_do_not_wait_for_it() {
    let log = MemoryLog::default();
    let (mut peer, _) = voter(log.clone());
    let sent = Syncs(log.clone(), Arc::default());
    peer.transport = Arc::new(sent.clone());
    let take = || std::mem::take(&mut *sent.1.lock().unwrap());
    let opened = log.syncs();

    peer.node.campaign().unwrap();
    round(&mut peer);
    assert!(take().iter().all(|message| *message == (MessageType::MsgRequestVote, opened + 1)));
    peer.step(message(MessageType::MsgRequestVoteResponse, 2, 1)).unwrap();
    round(&mut peer);
    assert_eq!(log.syncs(), opened + 2);
    assert!(take().iter().all(|message| *message == (MessageType::MsgAppend, opened + 1)), "beside the sync");

    let mut append = message(MessageType::MsgAppend, 3, 2);
    append.entries = vec![raft::eraftpb::Entry { term: 2, index: 1, ..Default::default() }];
    peer.step(append).unwrap();
    round(&mut peer);
    assert_eq!(take(), [(MessageType::MsgAppendResponse, opened + 3)]);

    peer.step(Message { index: 9, log_term: 9, ..message(MessageType::MsgRequestVote, 2, 9) }).unwrap();
    for _ in 0..10 {
        // It is bound to its leader for an election timeout.
        peer.tick(Instant::now());
    }
    round(&mut peer);
    take();
    let before = log.syncs();
    peer.step(Message { index: 9, log_term: 9, ..message(MessageType::MsgRequestVote, 2, 9) }).unwrap();
    round(&mut peer);
    assert_eq!(take(), [(MessageType::MsgRequestVoteResponse, before + 1)]);
}

#[test]
fn one_that_elects_itself_says_nothing_in_a_term_that_a_crash_would_undo() {
    let log = MemoryLog::default();
    let members = ConfState { voters: vec![1], learners: vec![2], ..ConfState::default() };
    let storage = LogStorage::open(Box::new(log.clone()) as Box<dyn LogEngine>, members, 0).unwrap();
    let opened = log.syncs();
    let config = raft::Config { id: 1, ..Default::default() };
    let node = RawNode::new(&config, storage, &crate::raft_log::slog_to_tracing()).unwrap();
    let sent = Syncs(log.clone(), Arc::default());
    let (lease, now) = (LeaseTracker::new(LEASE), Instant::now());
    let mut peer = Peer::new(first_region(), node, lease, u64::MAX, now, outside(sent.clone()));
    peer.campaign_alone().unwrap();
    round(&mut peer);
    let sent = sent.1.lock().unwrap().clone();
    assert!(!sent.is_empty() && sent.iter().all(|(_, syncs)| *syncs == opened + 1), "{sent:?}");
}

#[test]
fn while_apply_lags_messages_go_on_and_a_lost_leadership_is_noticed() {
    let (peer, sent) = voter(MemoryLog::default());
    let mut peer = settle_in(elect(peer));
    peer.propose(proposal(1).0, &mut Effects::default());
    round(&mut peer);
    assert_eq!(acknowledge_append(&mut peer, 2).apply.len(), 1);
    peer.most_applying_bytes = 1;
    assert!(peer.applying_bytes >= peer.most_applying_bytes);

    let handed = (0..6).map(|_| {
        peer.propose(proposal(1).0, &mut Effects::default());
        round(&mut peer).apply.len()
    });
    assert_eq!(handed.sum::<usize>(), 0);
    assert_eq!(sent.take().last(), Some(&MessageType::MsgAppend), "others get their entries");
    let given: usize = acknowledge_append(&mut peer, 8).apply.iter().map(|task| task.entries.len()).sum();
    assert!(given <= 2, "the bound holds, but for what raft always adds");
    let settled = replies(depose(&mut peer));
    assert!(settled.len() >= 2 && settled.iter().all(Outcome::is_indeterminate), "{settled:?}");
    assert_eq!(peer.leads, None);
}

#[test]
fn an_entry_that_a_new_leader_has_overwritten_is_told_as_stale() {
    let mut peer = leader();
    peer.propose(proposal(1).0, &mut Effects::default());
    round(&mut peer);
    // One Ready brings the new leader, its entry at the same place, and word that it is committed.
    let entry = raft::eraftpb::Entry { term: 2, index: 2, ..Default::default() };
    let append = Message { index: 1, log_term: 1, commit: 2, entries: vec![entry], ..Message::default() };
    let append = Message { msg_type: MessageType::MsgAppend as i32, from: 3, to: 1, term: 2, ..append };
    peer.step(append).unwrap();
    let effects = round(&mut peer);
    assert!(effects.settled.is_empty(), "its fate is known: {:?}", effects.settled);
    let mut delegate = crate::apply::delegate::Delegate::new(
        1,
        ApplyState { index: 1, term: 1 },
        Membership::default(),
        false,
    );
    let mut prepared = crate::apply::delegate::Prepared::default();
    for task in effects.apply {
        delegate.prepare(task, &mut prepared).unwrap();
    }
    let settled = prepared.settled.into_iter().map(|settled| settled.reply.unwrap()).collect::<Vec<_>>();
    assert_eq!(settled, [Outcome::NotExecuted(Error::StaleCommand)]);
}

/// A leader with eleven applied entries, of which replica 2 has all and replica 3 the first five.
fn leader_of_a_slow_one() -> Peer {
    let mut peer = leader();
    for _ in 0..10 {
        peer.propose(proposal(1).0, &mut Effects::default());
    }
    round(&mut peer);
    acknowledge_append(&mut peer, 11);
    peer.step(Message { index: 5, ..message(MessageType::MsgAppendResponse, 3, 1) }).unwrap();
    round(&mut peer);
    apply_through(&mut peer, 11);
    peer
}

#[test]
fn a_leader_keeps_what_the_slowest_live_replica_needs_up_to_a_bound() {
    let truncated = |peer: &mut Peer, most_kept_bytes| {
        peer.truncate(11, most_kept_bytes, 10).unwrap();
        peer.node.store().truncated_index()
    };
    assert_eq!(truncated(&mut leader_of_a_slow_one(), u64::MAX), 5);
    assert_eq!(truncated(&mut leader_of_a_slow_one(), 0), 11);
    let mut peer = leader_of_a_slow_one();
    let each = (1..).find(|bytes| peer.node.store().within(*bytes) == 10).unwrap();
    assert_eq!(truncated(&mut peer, 2 * each), 9);

    // It is waited for as long as it was said.
    let mut peer = leader_of_a_slow_one();
    for tick in 1..=11 {
        assert_eq!(truncated(&mut peer, u64::MAX), 5, "tick {tick}");
        peer.step(message(MessageType::MsgHeartbeatResponse, 2, 1)).unwrap();
        peer.tick(Instant::now());
        round(&mut peer);
    }
    assert_eq!(truncated(&mut peer, u64::MAX), 11);
}

#[test]
fn one_that_follows_keeps_what_it_may_have_to_give_as_a_leader() {
    let mut peer = leader_of_a_slow_one();
    depose(&mut peer);
    peer.truncate(11, u64::MAX, 10).unwrap();
    assert_eq!(peer.node.store().truncated_index(), 0);
    peer.truncate(11, 0, 10).unwrap();
    assert_eq!(peer.node.store().truncated_index(), 11);
}

/// The only chunk of a snapshot without keys.
fn chunk(position: Position) -> SnapshotChunk {
    let changes = crate::engine::modify::encode(&[]);
    SnapshotChunk { region: 1, from: 3, to: 1, position, sending: Sending::default(), number: 0, changes }
}

/// Gives a peer a place for the chunks of snapshots.
fn staging_of(peer: &mut Peer) -> Arc<Staging> {
    let engine = Arc::new(crate::engine::memory::MemoryEngine::default());
    let staging = Arc::new(Staging::new(Arc::clone(&engine) as _));
    peer.node.mut_store().set_snapshots(Snapshots::new(engine, Arc::clone(&staging), Arc::default()));
    staging
}

#[test]
fn a_snapshot_that_may_hold_a_proposals_entry_leaves_its_fate_in_doubt() {
    let mut peer = leader();
    let staging = staging_of(&mut peer);
    for _ in 0..3 {
        peer.propose(proposal(1).0, &mut Effects::default());
    }
    round(&mut peer);
    // The others have elected a leader that overwrote some of them, or none, and has forgotten all but the last place.
    peer.step(snapshot(3, 1)).unwrap();
    assert!(round(&mut peer).settled.is_empty(), "its chunk is missing");
    let position = Position { index: 3, term: 2 };
    staging.stage(&chunk(position)).unwrap();
    peer.step(snapshot(3, 1)).unwrap();
    let effects = round(&mut peer);
    assert_eq!(effects.apply.iter().filter_map(|task| task.snapshot).collect::<Vec<_>>(), [position]);
    let causes = [Cause::SnapshotInstalled, Cause::SnapshotInstalled, Cause::LeadershipLost];
    assert_eq!(replies(effects), causes.map(Outcome::Indeterminate));
    assert_eq!((peer.leads, peer.node.store().truncated_index()), (None, 3));
}

#[test]
fn no_read_is_let_go_once_a_snapshot_is_about_to_replace_the_data() {
    let mut peer = leader();
    let staging = staging_of(&mut peer);
    let mut effects = Effects::default();
    // One is confirmed and applied in this very turn; one is confirmed, and apply is not there yet.
    for (index, applied) in [(2, true), (3, false)] {
        peer.propose(proposal(1).0, &mut effects);
        round(&mut peer);
        acknowledge_append(&mut peer, index);
        peer.read(read().0, &mut effects);
        round(&mut peer);
        let mut confirmation = message(MessageType::MsgHeartbeatResponse, 2, 1);
        confirmation.context = peer.reads.last_question().to_be_bytes().to_vec();
        peer.node.step(confirmation).unwrap();
        assert!(round(&mut peer).readable.is_empty(), "it waits for apply");
        if applied {
            effects = apply_through(&mut peer, index);
        }
    }
    assert_eq!(effects.readable.len(), 1);
    staging.stage(&chunk(Position { index: 9, term: 2 })).unwrap();
    peer.step(snapshot(9, 1)).unwrap();
    peer.round(&mut effects).unwrap();
    assert!(effects.apply.iter().any(|task| task.snapshot.is_some()));
    assert!(effects.readable.is_empty(), "apply may have begun to remove what it would read");
    assert_eq!(
        replies(effects)
            .iter()
            .filter(|reply| matches!(reply, Outcome::NotExecuted(Error::NotLeader { .. })))
            .count(),
        2
    );
    assert!(apply_through(&mut peer, 9).readable.is_empty());
}

#[test]
fn a_follower_takes_no_more_than_a_bound_however_slowly_entries_come_while_its_apply_stands_still() {
    let mut peer = follower();
    peer.most_applying_bytes = 1000;
    let entry = |index| raft::eraftpb::Entry { term: 1, index, data: vec![0; 100], ..Default::default() };
    let append = |peer: &mut Peer, index: u64| {
        let entries = vec![entry(index)];
        let append = Message {
            index: index - 1,
            log_term: u64::from(index > 1),
            commit: index,
            entries,
            ..Message::default()
        };
        let append = Message { msg_type: MessageType::MsgAppend as i32, from: 3, to: 1, term: 1, ..append };
        peer.step(append).unwrap();
        round(peer).apply.iter().map(|task| task.bytes).sum::<usize>()
    };
    let mut held = 0;
    let (mut index, mut bytes) = (1, append(&mut peer, 1));
    while bytes > 0 {
        held += bytes;
        index += 1;
        bytes = append(&mut peer, index);
        assert!(index < 100, "it takes whatever comes");
    }
    assert!((1000..3000).contains(&held), "{held}");
    assert_eq!(peer.node.raft.raft_log.last_index(), index - 1, "what has no room is not acknowledged");
    let mut effects = Effects::default();
    peer.applied(
        ApplyRes { index: index - 1, term: 1, bytes: held, changes: Vec::new(), conf_ver: 1 },
        &mut effects,
    );
    assert!(append(&mut peer, index) > 0, "and is taken when there is some");
}

#[test]
fn a_snapshot_waits_for_what_the_log_has_forgotten_and_for_no_entry_of_the_leaders_own_term() {
    let mut peer = elect(follower());
    assert!(
        peer.node.raft.raft_log.committed < peer.node.raft.raft_log.last_index(),
        "its own is not committed"
    );
    let engine = Arc::new(crate::engine::memory::MemoryEngine::default());
    let (staging, applied) = (Arc::new(Staging::new(Arc::clone(&engine) as _)), Arc::new(AtomicU64::new(0)));
    let snapshots = Snapshots::new(Arc::clone(&engine) as _, staging, Arc::clone(&applied));
    peer.node.mut_store().set_snapshots(snapshots);
    let take = |peer: &Peer, index| raft::Storage::snapshot(peer.node.store(), index, 2);
    let members = |index| {
        let mut batch = crate::engine::WriteBatch::default();
        let members = ConfState { voters: vec![1, 2, 3], ..ConfState::default() };
        save_membership(&Membership { members, index, conf_ver: 2 }, &mut batch);
        engine.write(&batch).unwrap();
    };
    members(0);
    assert!(take(&peer, 0).is_err(), "nothing was applied");
    for (index, is_taken) in [(7, false), (8, true), (9, true)] {
        applied.store(index, Ordering::Relaxed);
        let taken = take(&peer, 8).map(|snapshot| snapshot.get_metadata().index);
        assert_eq!(taken.ok(), is_taken.then_some(index));
    }
    // The start applies again what made the members that the data has.
    members(10);
    assert!(take(&peer, 8).is_err(), "members of a later entry would be made twice");
}

/// Wishes for a change of members; the answer comes later.
fn wish(peer: &mut Peer, changes: &[MemberChange]) -> (Effects, callback_slot::Reply<Outcome<Members>>) {
    let (callback, reply) = callback_slot::reply();
    let mut effects = Effects::default();
    peer.change_members(ChangeMembers { changes: changes.to_vec(), callback }, &mut effects);
    (effects, reply)
}

fn answers(effects: &Effects) -> Vec<Outcome<Members>> {
    effects.changed.iter().map(|(_, outcome)| outcome.clone()).collect()
}

fn refused(why: MemberChangeRefused) -> Vec<Outcome<Members>> {
    vec![Outcome::NotExecuted(Error::MemberChange(why))]
}

/// What apply makes of the committed entries that it is given.
fn apply(peer: &mut Peer, delegate: &mut crate::apply::delegate::Delegate, given: Effects) -> Effects {
    let mut effects = Effects::default();
    for task in given.apply {
        let mut prepared = delegate.begin();
        delegate.prepare(task, &mut prepared).unwrap();
        let ApplyState { index, term } = delegate.state();
        peer.applied(
            ApplyRes { index, term, bytes: 0, changes: prepared.changes, conf_ver: delegate.conf_ver() },
            &mut effects,
        );
    }
    effects
}

fn three() -> ConfState {
    ConfState { voters: vec![1, 2, 3], ..ConfState::default() }
}

fn delegate() -> crate::apply::delegate::Delegate {
    let state = ApplyState { index: 1, term: 1 };
    crate::apply::delegate::Delegate::new(1, state, Membership::first(three()), false)
}

#[test]
fn members_change_one_after_the_other_and_only_as_they_can() {
    let (effects, _) = wish(&mut follower(), &[MemberChange::AddLearner(4)]);
    assert_eq!(answers(&effects), [Outcome::NotExecuted(Error::NotLeader { leader: None })]);
    let (mut peer, mut delegate) = (leader(), delegate());
    for (change, why) in [
        (MemberChange::Remove(9), MemberChangeRefused::Unknown { replica: 9 }),
        (MemberChange::AddVoter(2), MemberChangeRefused::AlreadyThere { replica: 2 }),
    ] {
        assert_eq!(answers(&wish(&mut peer, &[change]).0), refused(why));
    }
    let (effects, reply) = wish(&mut peer, &[MemberChange::AddLearner(4)]);
    assert_eq!(answers(&effects), []);
    let (effects, _) = wish(&mut peer, &[MemberChange::AddLearner(5)]);
    assert_eq!(answers(&effects), refused(MemberChangeRefused::Pending));
    round(&mut peer);
    let given = acknowledge_append(&mut peer, 2);
    assert!(!reply.is_ready());
    assert_eq!(answers(&apply(&mut peer, &mut delegate, given)), [], "only this replica knows");
    assert!(peer.node.raft.prs().get(4).is_some(), "raft sends it entries now");
    let members = Members { voters: [1, 2, 3].into(), learners: [4].into(), ..Members::default() };
    assert_eq!(answers(&knows(&mut peer, 4, 2)), [], "who does not vote does not count");
    assert_eq!(answers(&knows(&mut peer, 3, 2)), [Outcome::Applied(members)]);
}

#[test]
fn a_proposal_is_applied_in_the_epoch_that_it_names_or_not_at_all() {
    let (mut peer, mut delegate) = (leader(), delegate());
    let propose = |peer: &mut Peer, conf_ver, version| {
        let (task, _) = task_in(Some(RegionEpoch { conf_ver, version }), &[1]);
        let mut effects = Effects::default();
        let proposal = Proposal { task, term: None, data: vec![1], response: Response::Done };
        peer.propose(proposal, &mut effects);
        effects.settled.pop().map(|settled| settled.reply.expect("it was not told"))
    };
    let refused = |conf_ver| {
        let epoch = RegionEpoch { conf_ver, version: 1 };
        let current = Box::new(CurrentRegion { epoch, ..first_region() });
        Some(Outcome::NotExecuted(Error::EpochNotMatch(current)))
    };
    let pending = || Some(Outcome::NotExecuted(Error::EpochPending { region: 1 }));
    let last_index = |peer: &Peer| peer.node.raft.raft_log.last_index();
    assert_eq!(propose(&mut peer, 2, 1), refused(1), "it has not come yet");
    assert_eq!(propose(&mut peer, 1, 2), refused(1));
    assert_eq!(last_index(&peer), 1, "nothing of them is in the log");
    assert_eq!(propose(&mut peer, 1, 1), None);
    // From the proposal of a change on, the old epoch ends and the new one has not begun.
    drop(wish(&mut peer, &[MemberChange::AddLearner(4)]));
    for conf_ver in [1, 2] {
        assert_eq!(propose(&mut peer, conf_ver, 1), pending());
    }
    assert_eq!(last_index(&peer), 3);
    round(&mut peer);
    let mut given = acknowledge_append(&mut peer, 3);
    // The delegate knows entries that hold changes.
    given.apply.iter_mut().for_each(|task| task.entries.retain(|entry| entry.index == 3));
    delegate.restart(ApplyState { index: 2, term: 1 }, Membership::first(three()));
    apply(&mut peer, &mut delegate, given);
    assert_eq!(propose(&mut peer, 1, 1), refused(2));
    assert_eq!(propose(&mut peer, 2, 1), None);
    // A later leader does not know what that entry is until it has applied it.
    depose(&mut peer);
    peer.node.campaign().unwrap();
    round(&mut peer);
    peer.node.step(message(MessageType::MsgRequestVoteResponse, 2, 3)).unwrap();
    round(&mut peer);
    for conf_ver in [1, 2, 3] {
        assert_eq!(propose(&mut peer, conf_ver, 1), pending());
    }
    peer.node.step(Message { index: 5, ..message(MessageType::MsgAppendResponse, 2, 3) }).unwrap();
    round(&mut peer);
    let res = ApplyRes { index: 5, term: 3, bytes: 0, changes: Vec::new(), conf_ver: 3 };
    peer.applied(res, &mut Effects::default());
    assert_eq!(propose(&mut peer, 2, 1), refused(3));
    assert_eq!(propose(&mut peer, 3, 1), None);
}

#[test]
fn a_change_of_several_is_answered_when_only_the_new_ones_count() {
    let (mut peer, mut delegate) = (leader(), delegate());
    let changes = [MemberChange::AddVoter(4), MemberChange::AddVoter(5), MemberChange::Remove(3)];
    let (effects, _reply) = wish(&mut peer, &changes);
    assert_eq!(answers(&effects), []);
    round(&mut peer);
    let given = acknowledge_append(&mut peer, 2);
    assert_eq!(answers(&apply(&mut peer, &mut delegate, given)), [], "the old voters still count");
    assert_eq!(answers(&wish(&mut peer, &changes).0), refused(MemberChangeRefused::Pending));
    round(&mut peer);
    assert!(acknowledge_append(&mut peer, 3).apply.is_empty(), "two of 1, 2, 4 and 5 are no majority");
    peer.node.step(Message { index: 3, ..message(MessageType::MsgAppendResponse, 4, 1) }).unwrap();
    let given = round(&mut peer);
    assert_eq!(answers(&apply(&mut peer, &mut delegate, given)), []);
    assert_eq!(answers(&knows(&mut peer, 4, 2)), [], "of the joint membership");
    assert_eq!(answers(&knows(&mut peer, 4, 3)), [], "two of four");
    let members = Members { voters: [1, 2, 4, 5].into(), ..Members::default() };
    assert_eq!(answers(&knows(&mut peer, 5, 3)), [Outcome::Applied(members)]);
}

/// A leader that has applied its own removal, with an entry behind that. So far nobody else knows that it is committed.
fn leader_without_vote() -> (Peer, Sent) {
    let (peer, sent) = voter(MemoryLog::default());
    let (mut peer, mut delegate) = (settle_in(elect(peer)), delegate());
    std::mem::forget(wish(&mut peer, &[MemberChange::Remove(1)]).1);
    peer.propose(proposal(1).0, &mut Effects::default());
    round(&mut peer);
    let given = acknowledge_append(&mut peer, 2);
    assert_eq!(answers(&apply(&mut peer, &mut delegate, given)), []);
    (peer, sent)
}

#[test]
fn a_leader_that_is_removed_leads_until_those_who_are_left_know_that_and_then_its_caller_hears_it() {
    let (mut peer, _) = leader_without_vote();
    assert_eq!(answers(&knows(&mut peer, 2, 2)), [], "one of two");
    assert_eq!(peer.led_term(), Some(1));
    assert!(peer.node.raft.has_pending_conf(), "the next change has to wait");
    peer.truncate(2, 0, 10).unwrap();
    assert_eq!(peer.node.store().truncated_index(), 1, "raft would skip what is truncated");
    let effects = knows(&mut peer, 3, 2);
    let members = Members { voters: [2, 3].into(), ..Members::default() };
    assert_eq!(answers(&effects), [Outcome::Applied(members)]);
    assert!(effects.messages.is_empty(), "nobody else has the last entry");
    assert_eq!(replies(effects), [Outcome::Indeterminate(Cause::LeadershipLost)]);
    assert_eq!((peer.leads, peer.lease()), (None, None));
    (0..100).for_each(|_| peer.tick(Instant::now()));
    round(&mut peer);
    assert_eq!((peer.node.raft.term, peer.node.raft.state), (1, StateRole::Follower), "it asks for no votes");
}

#[test]
fn a_leader_without_a_vote_hands_over_to_who_has_its_whole_log_once_its_lease_is_withdrawn() {
    let (mut peer, sent) = leader_without_vote();
    knows(&mut peer, 3, 2);
    sent.take();
    let effects = knows(&mut peer, 2, 3);
    assert_eq!(effects.messages.len(), 1);
    assert_eq!((effects.messages[0].get_msg_type(), effects.messages[0].to), (MessageType::MsgTimeoutNow, 2));
    assert!(!sent.take().contains(&MessageType::MsgTimeoutNow));
    assert_eq!((peer.leads, peer.lease()), (None, None));
    // What it has applied since then is told to raft like any follower's.
    apply_through(&mut peer, 3);
    assert_eq!(peer.node.raft.raft_log.applied, 3);
}

#[test]
fn a_deposed_leader_that_waits_to_lose_its_vote_loses_it_at_once() {
    let (mut peer, _) = leader_without_vote();
    let effects = depose(&mut peer);
    assert_eq!(answers(&effects), [Outcome::Indeterminate(Cause::LeadershipLost)]);
    assert!(!peer.node.raft.promotable());
    assert_eq!(peer.node.raft.raft_log.applied, 2);
}

#[test]
fn a_replica_keeps_what_it_promised_a_leader_whatever_ends_the_term() {
    use MessageType::{
        MsgAppendResponse, MsgHeartbeatResponse, MsgRequestPreVoteResponse, MsgRequestVoteResponse,
    };
    for ends in [MsgRequestPreVoteResponse, MsgRequestVoteResponse, MsgAppendResponse, MsgHeartbeatResponse] {
        let (mut peer, sent) = voter(MemoryLog::default());
        peer.step(message(MessageType::MsgHeartbeat, 2, 1)).unwrap();
        round(&mut peer);
        let timeout = peer.node.raft.election_timeout();
        let asks = |peer: &mut Peer| {
            sent.take();
            peer.step(message(MessageType::MsgRequestVote, 3, 2)).unwrap();
            round(peer);
            sent.take()
        };
        peer.step(Message { reject: true, ..message(ends, 3, 2) }).unwrap();
        assert_eq!((peer.node.raft.term, peer.node.raft.leader_id), (2, 0), "raft has forgotten the leader");
        // It asks for votes later than it gives one.
        peer.node.raft.set_randomized_election_timeout(2 * timeout - 1);
        for tick in 0..timeout {
            assert_eq!(asks(&mut peer), [], "{ends:?}, {tick} ticks after it has heard of the leader");
            peer.tick(Instant::now());
        }
        assert_eq!(asks(&mut peer), [MsgRequestVoteResponse], "{ends:?}");
    }
    // Whom the leader itself has told to take over gets the vote.
    let (mut peer, sent) = voter(MemoryLog::default());
    peer.step(message(MessageType::MsgHeartbeat, 2, 1)).unwrap();
    round(&mut peer);
    let context = raft::CAMPAIGN_TRANSFER.to_vec();
    sent.take();
    peer.step(Message { context, ..message(MessageType::MsgRequestVote, 3, 2) }).unwrap();
    round(&mut peer);
    assert_eq!(sent.take(), [MsgRequestVoteResponse]);
}

#[test]
fn the_vote_of_a_leader_that_is_deposed_leaves_behind_its_lease() {
    let (peer, sent) = voter(MemoryLog::default());
    let mut peer = settle_in(elect(peer));
    let mut effects = Effects::default();
    peer.step(message(MessageType::MsgAppendResponse, 3, 2)).unwrap();
    sent.take();
    let last = peer.node.raft.raft_log.last_index();
    let asks = Message { index: last, log_term: 1, ..message(MessageType::MsgRequestVote, 3, 2) };
    peer.step(asks).unwrap();
    peer.round(&mut effects).unwrap();
    assert!(!sent.take().contains(&MessageType::MsgRequestVoteResponse));
    assert_eq!(effects.messages[0].get_msg_type(), MessageType::MsgRequestVoteResponse);
    assert_eq!(peer.lease(), None);
}

#[test]
fn a_leader_that_is_deposed_does_not_know_what_comes_of_a_change() {
    let mut peer = leader();
    let _reply = wish(&mut peer, &[MemberChange::AddLearner(4)]).1;
    round(&mut peer);
    let effects = depose(&mut peer);
    assert_eq!(answers(&effects), [Outcome::Indeterminate(Cause::LeadershipLost)]);
}

#[test]
fn a_change_that_a_snapshot_stands_for_is_not_told_to_raft_again() {
    // Told before the round that takes the snapshot into the log, and after it.
    for takes_snapshot in [false, true] {
        let (mut peer, mut delegate) = (leader(), delegate());
        let engine = Arc::new(crate::engine::memory::MemoryEngine::default());
        let staging = Arc::new(Staging::new(Arc::clone(&engine) as _));
        peer.node.mut_store().set_snapshots(Snapshots::new(engine, Arc::clone(&staging), Arc::default()));
        let mut donor = leader();
        let _reply = wish(&mut donor, &[MemberChange::AddLearner(4)]).1;
        let change = donor.node.raft.raft_log.unstable_entries()[0].clone();
        let entries = vec![raft::eraftpb::Entry { term: 2, ..change }];
        let append =
            Message { index: 1, log_term: 1, commit: 2, entries, ..message(MessageType::MsgAppend, 3, 2) };
        peer.step(append).unwrap();
        let given = round(&mut peer);
        // Replica 4 has come and gone, as the snapshot has it.
        let position = Position { index: 9, term: 2 };
        staging.stage(&chunk(position)).unwrap();
        peer.step(snapshot(9, 1)).unwrap();
        if takes_snapshot {
            round(&mut peer);
        }
        apply(&mut peer, &mut delegate, given);
        assert!(peer.node.raft.prs().get(4).is_none(), "after the round: {takes_snapshot}");
    }
}

#[test]
fn a_replica_that_hears_of_its_own_acknowledgements_and_does_not_have_them_stops() {
    let mut peer = follower();
    let mut heartbeat = message(MessageType::MsgHeartbeat, 2, 1);
    heartbeat.commit = 3;
    let error = peer.step(heartbeat).unwrap_err().to_string();
    assert!(error.contains("entry 3") && error.contains("lost"), "{error}");
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_counts_for_nothing() {
    let mut peer = fresh_leader();
    let mut answer = message(MessageType::MsgAppendResponse, 2, 1);
    answer.index = 2;
    peer.step(answer.clone()).unwrap();
    round(&mut peer);
    assert_eq!(peer.node.raft.raft_log.committed, 0);
    answer.index = 1;
    peer.step(answer).unwrap();
    round(&mut peer);
    assert_eq!(peer.node.raft.raft_log.committed, 1);
}

#[test]
fn an_only_voter_keeps_what_it_has_committed_with_the_next_change_of_members() {
    let log = MemoryLog::default();
    let members = ConfState { voters: vec![1], learners: vec![2], ..ConfState::default() };
    let storage = LogStorage::open(Box::new(log.clone()) as Box<dyn LogEngine>, members.clone(), 0).unwrap();
    let config = raft::Config { id: 1, ..Default::default() };
    let node = RawNode::new(&config, storage, &crate::raft_log::slog_to_tracing()).unwrap();
    let (lease, now) = (LeaseTracker::new(LEASE), Instant::now());
    let mut peer = Peer::new(first_region(), node, lease, u64::MAX, now, outside(Sent::default()));
    peer.campaign_alone().unwrap();
    let membership = Membership::first(members.clone());
    let mut delegate = crate::apply::delegate::Delegate::new(1, ApplyState::default(), membership, false);
    let given = round(&mut peer);
    apply(&mut peer, &mut delegate, given);
    // It leaves the vote to another one, through a membership that both have a part in.
    let changes = [MemberChange::AddVoter(2), MemberChange::AddLearner(1)];
    let _reply = wish(&mut peer, &changes).1;
    let given = round(&mut peer);
    apply(&mut peer, &mut delegate, given);
    round(&mut peer);
    assert_eq!(peer.node.raft.raft_log.last_index(), 3, "the end of that membership is in the log");
    drop(peer);
    log.lose_power();
    // Else it could lead after a crash by its own vote alone, beside the one who votes now.
    let again = LogStorage::open(Box::new(log) as Box<dyn LogEngine>, members, 0).unwrap();
    assert_eq!(again.hard_state().commit, 2);
}
