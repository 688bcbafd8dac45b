//! Where a replica stands: the applied index and the membership, kept beside the data that they describe and written
//! in the same batches. Pure.

use raft::eraftpb::ConfState;

use crate::{
    apply::membership::Membership,
    engine::{Cf, Modify, Snapshot, WriteBatch},
    error::Error,
    region::RegionEpoch,
    txn::meta::Number,
};

const APPLIED_KEY: &[u8] = b"applied";
const CONF_STATE_KEY: &[u8] = b"conf_state";
const MEMBERS_INDEX_KEY: &[u8] = b"conf_state_index";

/// How far a replica has applied its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApplyState {
    pub(crate) index: u64,
    pub(crate) term: u64,
}

impl ApplyState {
    /// Reads the state from the data. Fresh data has applied nothing.
    pub(crate) fn load(snapshot: &dyn Snapshot) -> Result<Self, Error> {
        let Some(bytes) = snapshot.get(Cf::Meta, APPLIED_KEY)? else { return Ok(Self::default()) };
        match words(&bytes).as_deref() {
            Some(&[index, term]) => Ok(Self { index, term }),
            _ => Err(Error::Corrupt("the applied index has not 16 bytes".into())),
        }
    }

    /// Adds the state to a batch. `before` is what this added to an earlier one; its memory is used again.
    pub(crate) fn save(self, before: Option<Modify>, batch: &mut WriteBatch) {
        let (key, mut value) = match before {
            Some(Modify::Put(_, key, value)) => (key, value),
            _ => (APPLIED_KEY.to_vec(), Vec::with_capacity(16)),
        };
        value.clear();
        value.extend([self.index, self.term].into_iter().flat_map(u64::to_be_bytes));
        batch.push(Modify::Put(Cf::Meta, key, value));
    }
}

/// Reads the membership from the data. Fresh data has none; data of a group that was never changed need not say which
/// entry made it.
pub(crate) fn load_membership(snapshot: &dyn Snapshot) -> Result<Option<Membership>, Error> {
    let Some(stored) = snapshot.get(Cf::Meta, CONF_STATE_KEY)? else { return Ok(None) };
    let members = decode_members(&stored);
    let index = match snapshot.get(Cf::Meta, MEMBERS_INDEX_KEY)? {
        Some(stored) => {
            words(&stored).and_then(|words| <[u64; 1]>::try_from(words).ok()).map(|[index]| index)
        }
        None => Some(0),
    };
    let conf_ver = Number::ConfVer.load(snapshot)?.unwrap_or(RegionEpoch::default().conf_ver);
    let membership = members.zip(index).map(|(members, index)| Membership { members, index, conf_ver });
    membership.map(Some).ok_or_else(|| Error::Corrupt("the membership cannot be decoded".into()))
}

/// Adds the membership to a batch.
pub(crate) fn save_membership(membership: &Membership, batch: &mut WriteBatch) {
    let Membership { members, index, conf_ver } = membership;
    batch.push(Modify::Put(Cf::Meta, CONF_STATE_KEY.to_vec(), encode_members(members)));
    batch.push(Modify::Put(Cf::Meta, MEMBERS_INDEX_KEY.to_vec(), bytes([*index])));
    batch.push(Number::ConfVer.put(*conf_ver));
}

/// The bytes of a membership: four lists, each after its length, then whether a joint membership ends by itself.
pub(crate) fn encode_members(state: &ConfState) -> Vec<u8> {
    let ConfState { voters, learners, voters_outgoing, learners_next, auto_leave } = state;
    let lists = [voters, learners, voters_outgoing, learners_next];
    let lists =
        lists.into_iter().flat_map(|list| [list.len() as u64].into_iter().chain(list.iter().copied()));
    bytes(lists.chain([u64::from(*auto_leave)]))
}

/// The membership that [`encode_members`] wrote, if it is one.
pub(crate) fn decode_members(stored: &[u8]) -> Option<ConfState> {
    let words = words(stored)?;
    let mut rest = words.as_slice();
    let mut list = || {
        let (len, after) = rest.split_first()?;
        let (list, after) = after.split_at_checked(usize::try_from(*len).ok()?)?;
        rest = after;
        Some(list.to_vec())
    };
    let (voters, learners, voters_outgoing, learners_next) = (list()?, list()?, list()?, list()?);
    let auto_leave = match rest {
        [0] => false,
        [1] => true,
        _ => return None,
    };
    Some(ConfState { voters, learners, voters_outgoing, learners_next, auto_leave })
}

fn bytes(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_be_bytes).collect()
}

fn words(bytes: &[u8]) -> Option<Vec<u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    rest.is_empty().then(|| words.iter().map(|word| u64::from_be_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, memory::MemoryEngine};
    use proptest::prelude::*;

    fn with_meta(key: &[u8], value: Vec<u8>) -> MemoryEngine {
        let engine = MemoryEngine::default();
        let mut batch = WriteBatch::default();
        batch.push(Modify::Put(Cf::Meta, key.to_vec(), value));
        engine.write(&batch).unwrap();
        engine
    }

    #[test]
    fn an_applied_index_of_another_size_is_corrupt() {
        for size in [0, 8, 15, 17, 24] {
            let engine = with_meta(APPLIED_KEY, vec![0; size]);
            assert!(matches!(ApplyState::load(&*engine.snapshot()), Err(Error::Corrupt(_))), "{size}");
        }
    }

    #[test]
    fn fresh_data_has_applied_nothing_and_knows_no_members() {
        let engine = MemoryEngine::default();
        assert_eq!(ApplyState::load(&*engine.snapshot()), Ok(ApplyState::default()));
        assert_eq!(load_membership(&*engine.snapshot()), Ok(None));
    }

    proptest! {
        #[test]
        fn what_was_saved_is_loaded(
            lists in proptest::collection::vec(proptest::collection::vec(any::<u64>(), 0..4), 4),
            auto_leave: bool, index: u64, term: u64, conf_ver: u64,
        ) {
            let [voters, learners, voters_outgoing, learners_next]: [Vec<u64>; 4] = lists.try_into().unwrap();
            let members = ConfState { voters, learners, voters_outgoing, learners_next, auto_leave };
            let engine = MemoryEngine::default();
            let mut batch = WriteBatch::default();
            let membership = Membership { members, index, conf_ver };
            save_membership(&membership, &mut batch);
            ApplyState { index, term }.save(None, &mut batch);
            let before = batch.pop();
            ApplyState { index, term }.save(before, &mut batch);
            engine.write(&batch).unwrap();
            prop_assert_eq!(load_membership(&*engine.snapshot()), Ok(Some(membership)));
            prop_assert_eq!(ApplyState::load(&*engine.snapshot()), Ok(ApplyState { index, term }));
        }

        #[test]
        fn arbitrary_bytes_are_loaded_or_refused_and_never_panic(stored in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = load_membership(&*with_meta(CONF_STATE_KEY, stored.clone()).snapshot());
            let engine = with_meta(MEMBERS_INDEX_KEY, stored);
            let mut batch = WriteBatch::default();
            batch.push(Modify::Put(Cf::Meta, CONF_STATE_KEY.to_vec(), encode_members(&ConfState::default())));
            engine.write(&batch).unwrap();
            let _ = load_membership(&*engine.snapshot());
        }
    }
}
