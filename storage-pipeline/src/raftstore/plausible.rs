//! What no replica says to another one: messages that contradict themselves, or the log of whoever gets them. Raft ends its
//! thread with a panic at some of them. Pure.

use std::collections::BTreeSet;

use raft::eraftpb::{ConfState, Message, MessageType, Snapshot};

/// No log gets as long, and no sum of a few of these overflows.
const MOST: u64 = u64::MAX >> 8;

/// What is wrong with a message, whoever gets it.
pub(super) fn contradicts_itself(message: &Message) -> Option<&'static str> {
    let Message { term, index, commit, reject_hint, request_snapshot, log_term, .. } = *message;
    if [term, index, commit, reject_hint, request_snapshot, log_term].iter().any(|number| *number > MOST) {
        return Some("a number is beyond all bounds");
    }
    match message.get_msg_type() {
        MessageType::MsgAppend => entries(message),
        MessageType::MsgSnapshot => {
            message.snapshot.as_ref().map_or(Some("no snapshot"), |of| snapshot(of, term))
        }
        _ => None,
    }
}

/// Entries follow the place that the message names and each other, in terms that do not fall. Only the beginning of a log is of
/// term 0: for raft that is the term of whatever lies behind its end, too.
fn entries(message: &Message) -> Option<&'static str> {
    if (message.index == 0) != (message.log_term == 0) {
        return Some("entries follow a place that no log has");
    }
    let (mut index, mut term) = (message.index, message.log_term.max(1));
    for entry in &message.entries {
        if entry.index != index + 1 {
            return Some("entries do not follow each other");
        }
        if entry.term < term || entry.term > message.term {
            return Some("entries are of terms that do not follow each other");
        }
        (index, term) = (entry.index, entry.term);
    }
    None
}

fn snapshot(snapshot: &Snapshot, term: u64) -> Option<&'static str> {
    let of = snapshot.get_metadata();
    if of.index == 0 || of.index > MOST || of.term == 0 || of.term > term {
        return Some("the snapshot is of a place that no log has");
    }
    members(of.get_conf_state())
}

/// By the rules of raft, which restores no other members.
fn members(state: &ConfState) -> Option<&'static str> {
    let ConfState { voters, learners, voters_outgoing, learners_next, auto_leave } = state;
    let set = |ids: &[u64]| ids.iter().copied().collect::<BTreeSet<_>>();
    let lists = [voters, learners, voters_outgoing, learners_next];
    let [voters, learners, outgoing, next] = lists.map(|ids| set(ids));
    if lists.iter().any(|ids| ids.contains(&0) || set(ids).len() != ids.len()) {
        return Some("a member without an id, or named twice");
    }
    if voters.is_empty() || (*auto_leave && outgoing.is_empty()) {
        return Some("nobody votes, or nobody leaves a membership that ends by itself");
    }
    let is_elsewhere = |id: &u64| voters.contains(id) || outgoing.contains(id);
    if learners.iter().any(is_elsewhere) || !next.is_subset(&outgoing) || !next.is_disjoint(&voters) {
        return Some("a member has two places");
    }
    None
}

/// Whether a leader counts on entries that this replica has acknowledged and does not have: it has lost a part of its log, and
/// must neither vote nor acknowledge any more.
pub(super) fn tells_of_a_loss(message: &Message, term: u64, last_index: u64) -> bool {
    let is_heartbeat = message.get_msg_type() == MessageType::MsgHeartbeat;
    is_heartbeat && message.term >= term && message.commit > last_index
}

/// Whether a follower acknowledges, to the leader of this term, entries that it was never sent.
pub(super) fn acknowledges_too_much(message: &Message, term: u64, last_index: u64) -> bool {
    let is_answer = message.get_msg_type() == MessageType::MsgAppendResponse;
    is_answer && message.term == term && !message.reject && message.index > last_index
}

#[cfg(test)]
mod tests {
    use raft::eraftpb::{Entry, SnapshotMetadata};

    use super::*;

    fn append(index: u64, log_term: u64, entries: &[(u64, u64)]) -> Message {
        let entry = |(index, term): &(u64, u64)| Entry { index: *index, term: *term, ..Entry::default() };
        let entries = entries.iter().map(entry).collect();
        let mut message = Message { index, log_term, term: 5, entries, ..Message::default() };
        message.set_msg_type(MessageType::MsgAppend);
        message
    }

    #[test]
    fn entries_that_do_not_follow_each_other_are_refused() {
        for good in [&[][..], &[(4, 2)], &[(4, 2), (5, 2), (6, 5)]] {
            assert_eq!(contradicts_itself(&append(3, 2, good)), None, "{good:?}");
        }
        for bad in [&[(3, 2)][..], &[(5, 2)], &[(4, 2), (6, 2)], &[(4, 1)], &[(4, 3), (5, 2)], &[(4, 6)]] {
            assert!(contradicts_itself(&append(3, 2, bad)).is_some(), "{bad:?}");
        }
        assert_eq!(contradicts_itself(&append(0, 0, &[(1, 1)])), None);
        for (index, log_term, entry) in [(0, 0, (1, 0)), (0, 1, (1, 1)), (9, 0, (10, 1))] {
            assert!(
                contradicts_itself(&append(index, log_term, &[entry])).is_some(),
                "{index} of {log_term}"
            );
        }
        assert!(contradicts_itself(&append(u64::MAX, 2, &[(0, 2)])).is_some());
    }

    fn snapshot_of(index: u64, lists: [&[u64]; 4], auto_leave: bool) -> Message {
        let [voters, learners, voters_outgoing, learners_next] = lists.map(<[u64]>::to_vec);
        let members = ConfState { voters, learners, voters_outgoing, learners_next, auto_leave };
        let metadata = SnapshotMetadata { index, term: 2, conf_state: Some(members) };
        let snapshot = Snapshot { metadata: Some(metadata), ..Snapshot::default() };
        let mut message = Message { term: 5, snapshot: Some(snapshot), ..Message::default() };
        message.set_msg_type(MessageType::MsgSnapshot);
        message
    }

    #[test]
    fn a_snapshot_of_impossible_members_or_of_no_place_is_refused() {
        for (good, leaves) in
            [([&[1, 2, 3][..], &[4][..], &[][..], &[][..]], false), ([&[1, 2], &[], &[2, 3], &[3]], true)]
        {
            assert_eq!(contradicts_itself(&snapshot_of(7, good, leaves)), None, "{good:?}");
            assert!(contradicts_itself(&snapshot_of(0, good, leaves)).is_some());
        }
        for (bad, leaves) in [
            ([&[][..], &[1][..], &[][..], &[][..]], false),
            ([&[1, 1], &[], &[], &[]], false),
            ([&[0], &[], &[], &[]], false),
            ([&[1, 2], &[2], &[], &[]], false),
            ([&[1], &[2], &[2], &[]], false),
            ([&[1], &[], &[], &[2]], false),
            ([&[1, 2], &[], &[2], &[2]], false),
            ([&[1], &[], &[], &[]], true),
        ] {
            assert!(contradicts_itself(&snapshot_of(7, bad, leaves)).is_some(), "{bad:?}");
        }
        let mut empty = snapshot_of(7, [&[1], &[], &[], &[]], false);
        empty.snapshot = None;
        assert!(contradicts_itself(&empty).is_some());
    }

    #[test]
    fn nobody_knows_more_of_a_log_than_is_in_it() {
        let mut heartbeat = Message { term: 5, commit: 8, ..Message::default() };
        heartbeat.set_msg_type(MessageType::MsgHeartbeat);
        assert!(!tells_of_a_loss(&heartbeat, 5, 8));
        assert!(tells_of_a_loss(&heartbeat, 5, 7) && tells_of_a_loss(&heartbeat, 4, 7));
        assert!(!tells_of_a_loss(&heartbeat, 6, 7), "raft does not listen to an earlier term");
        let mut answer = Message { term: 5, index: 8, ..Message::default() };
        answer.set_msg_type(MessageType::MsgAppendResponse);
        assert!(!acknowledges_too_much(&answer, 5, 8));
        assert!(acknowledges_too_much(&answer, 5, 7));
        answer.reject = true;
        assert!(!acknowledges_too_much(&answer, 5, 7), "it says only where it was asked");
    }
}
