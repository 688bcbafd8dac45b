use super::*;
use crate::{
    apply::state::load_membership,
    command::Response,
    engine::{Cf, Engine, Modify, memory::MemoryEngine},
    error::Outcome,
    scheduler::{
        task::{Reply, Task, TaskContext},
        testing,
    },
};
use raft::eraftpb::ConfState;

fn entry(index: u64, term: u64, modifies: &[Modify]) -> Entry {
    let data = if modifies.is_empty() { Vec::new() } else { entry::encode(Owner::of(1), modifies) };
    Entry { index, term, data, ..Entry::default() }
}

fn put(key: &str) -> Modify {
    Modify::Put(Cf::Raw, key.into(), b"v".to_vec())
}

fn pending(index: u64, term: u64) -> Pending {
    let context = TaskContext { cid: index, ..testing::context(&[1]) };
    assert!(context.phase.propose());
    Pending { task: Task::new(context, |_| ()), index, term, response: Response::Done }
}

fn task(entries: Vec<Entry>, proposals: Vec<Pending>) -> ApplyTask {
    ApplyTask { region: 1, entries, proposals, bytes: 10, snapshot: None }
}

fn replies(prepared: &Prepared) -> Vec<(u64, Reply)> {
    let reply = |settled: &Settled| (settled.task.context().cid, settled.reply.clone().unwrap());
    prepared.settled.iter().map(reply).collect()
}

const STALE: Reply = Outcome::NotExecuted(Error::StaleCommand);
const DONE: Reply = Outcome::Applied(Response::Done);

#[test]
fn a_proposal_is_matched_by_index_and_term() {
    let mut delegate = Delegate::new(1, ApplyState { index: 4, term: 1 }, Membership::default(), false);
    let mut prepared = Prepared::default();
    let entries =
        vec![entry(5, 1, &[put("a")]), entry(6, 2, &[]), entry(7, 2, &[put("b")]), entry(8, 2, &[put("c")])];
    // Those at 6 and 7 were proposed in term 1 and overwritten; 8 is the new leader's own.
    let proposals = vec![pending(5, 1), pending(6, 1), pending(7, 1), pending(8, 2)];
    delegate.prepare(task(entries, proposals), &mut prepared).unwrap();
    assert_eq!(replies(&prepared), [(5, DONE), (6, STALE), (7, STALE), (8, DONE)]);
    assert_eq!(delegate.state(), ApplyState { index: 8, term: 2 });
    assert_eq!(prepared.batch.modifies(), [put("a"), put("b"), put("c")]);
}

#[test]
fn entries_without_a_proposal_are_applied_and_answer_nobody() {
    let mut delegate = Delegate::new(1, ApplyState::default(), Membership::default(), false);
    let mut prepared = Prepared::default();
    delegate.prepare(task(vec![entry(1, 1, &[]), entry(2, 1, &[put("a")])], vec![]), &mut prepared).unwrap();
    assert!(prepared.settled.is_empty());
    assert_eq!(prepared.batch.modifies(), [put("a")]);
}

#[test]
fn data_applied_index_and_membership_are_one_batch_and_read_back() {
    let engine = MemoryEngine::default();
    assert_eq!(ApplyState::load(&*engine.snapshot()), Ok(ApplyState::default()));
    let members = ConfState { voters: vec![1], ..ConfState::default() };
    let membership = Membership::first(members);
    let mut delegate = Delegate::new(1, ApplyState::default(), membership.clone(), true);
    let mut prepared = Prepared::default();
    delegate.prepare(task(vec![entry(1, 3, &[put("a")])], vec![]), &mut prepared).unwrap();
    delegate.seal(&mut prepared);
    engine.write(&prepared.batch).unwrap();
    assert_eq!(load_membership(&*engine.snapshot()), Ok(Some(membership)));
    assert_eq!(ApplyState::load(&*engine.snapshot()), Ok(ApplyState { index: 1, term: 3 }));
    assert!(engine.snapshot().get(Cf::Raw, b"a").unwrap().is_some());
}

#[test]
fn a_gap_a_repeat_or_a_foreign_entry_stops_the_replica() {
    let mut change = entry(5, 1, &[]);
    change.set_entry_type(EntryType::EntryConfChange);
    let mut unknown = entry(5, 1, &[]);
    unknown.data = vec![9];
    let of = |owner| Entry { data: entry::encode(owner, &[put("a")]), ..entry(5, 1, &[]) };
    let elsewhere = of(Owner::of(2));
    let before = of(Owner { version: 0, ..Owner::of(1) });
    let out_of_order = [entry(6, 1, &[]), entry(4, 1, &[]), entry(5, 0, &[])];
    for bad in out_of_order.into_iter().chain([change, unknown, elsewhere, before]) {
        let mut delegate = Delegate::new(1, ApplyState { index: 4, term: 1 }, Membership::default(), false);
        let result = delegate.prepare(task(vec![bad.clone()], vec![]), &mut Prepared::default());
        assert!(matches!(result, Err(Error::Corrupt(_))), "{bad:?}");
    }
}
