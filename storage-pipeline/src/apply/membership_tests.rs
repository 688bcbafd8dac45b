use super::*;
use proptest::prelude::*;
use raft::{RawNode, eraftpb::ConfChangeSingle, storage::MemStorage};

fn change(singles: &[(ConfChangeType, u64)]) -> ConfChangeV2 {
    let mut change = ConfChangeV2::default();
    for (kind, node_id) in singles {
        let mut single = ConfChangeSingle { node_id: *node_id, ..Default::default() };
        single.set_change_type(*kind);
        change.mut_changes().push(single);
    }
    change
}

fn entry(index: u64, change: &ConfChangeV2) -> Entry {
    let mut entry = Entry { index, term: 1, data: change.write_to_bytes().unwrap(), ..Entry::default() };
    entry.set_entry_type(EntryType::EntryConfChangeV2);
    entry
}

fn sorted(mut members: ConfState) -> ConfState {
    let ConfState { voters, learners, voters_outgoing, learners_next, .. } = &mut members;
    [voters, learners, voters_outgoing, learners_next].into_iter().for_each(|ids| ids.sort_unstable());
    members
}

#[test]
fn a_change_is_applied_once_however_often_the_log_is() {
    let members = ConfState { voters: vec![1, 2, 3], ..ConfState::default() };
    let mut membership = Membership::first(members);
    let swap = entry(5, &change(&[(ConfChangeType::AddNode, 4), (ConfChangeType::RemoveNode, 1)]));
    let leave = entry(6, &ConfChangeV2::default());
    assert!(membership.apply(&swap).unwrap().is_some());
    assert_eq!((membership.members.voters.clone(), membership.index), (vec![2, 3, 4], 5));
    assert_eq!(membership.conf_ver, 2);
    assert_eq!(membership.members.voters_outgoing, [1, 2, 3]);
    let joint = membership.clone();
    assert!(membership.apply(&swap).unwrap().is_none());
    assert_eq!(membership, joint);
    assert!(membership.apply(&leave).unwrap().is_some());
    assert_eq!(membership.conf_ver, 3, "leaving a joint membership is a change");
    let left = membership.clone();
    for again in [&swap, &leave] {
        assert!(membership.apply(again).unwrap().is_none());
    }
    assert_eq!(membership, left);
    // An entry behind it that contradicts it is no change that any leader made.
    assert!(matches!(membership.apply(&entry(7, &ConfChangeV2::default())), Err(Error::Corrupt(_))));
    let garbage = Entry { data: vec![0xff; 9], ..entry(7, &ConfChangeV2::default()) };
    assert!(matches!(membership.apply(&garbage), Err(Error::Corrupt(_))));
}

proptest! {
    /// Raft's own computation is the oracle: it takes the same changes and comes to the same members.
    #[test]
    fn the_members_are_those_that_raft_has(
        steps in proptest::collection::vec(proptest::collection::vec((0..3u8, 1..7u64), 0..4), 1..20),
    ) {
        let members = ConfState { voters: vec![1, 2, 3], ..ConfState::default() };
        let storage = MemStorage::new_with_conf_state(members.clone());
        let config = raft::Config { id: 1, election_tick: 10, heartbeat_tick: 2, ..raft::Config::default() };
        let mut node = RawNode::new(&config, storage, &crate::raft_log::slog_to_tracing()).unwrap();
        let mut membership = Membership::first(members);
        for (index, step) in (1..).zip(steps) {
            let kinds = [ConfChangeType::AddNode, ConfChangeType::AddLearnerNode, ConfChangeType::RemoveNode];
            let singles: Vec<_> = step.into_iter().map(|(kind, id)| (kinds[kind as usize], id)).collect();
            let change = change(&singles);
            let before = membership.clone();
            match (node.apply_conf_change(&change), membership.apply(&entry(index, &change))) {
                (Ok(by_raft), Ok(Some(_))) => prop_assert_eq!(sorted(by_raft), membership.members.clone()),
                (Err(_), Err(_)) => prop_assert_eq!(&membership, &before),
                (by_raft, by_us) => prop_assert!(false, "{by_raft:?} and {by_us:?} after {change:?}"),
            }
        }
    }
}
