//! Whose data a directory holds, and how it is split: written when the data is new, and compared at every later start.

use crate::{
    config::{Config, ConfigError},
    engine::{Cf, Engine, EngineError, Modify, WriteBatch},
    error::{Error, OpenError},
    txn::meta::Number,
};
#[cfg(feature = "server")]
use crate::{error::NodeIdentity, storage::Parts};

/// Where the data says at which keys it is split, in [`Cf::Meta`].
const SPLIT_KEYS_KEY: &[u8] = b"split_keys";

/// Makes sure that the data is split where it was when it was new. Data that says nothing of it was never split, and data that
/// belongs to no replica yet is new.
pub(super) fn check_split_keys(
    engine: &dyn Engine,
    config: &Config,
    in_data: &dyn Fn(Error) -> OpenError,
) -> Result<(), OpenError> {
    let engine_error = |error: EngineError| in_data(error.into());
    let view = engine.snapshot();
    let stored = view.get(Cf::Meta, SPLIT_KEYS_KEY).map_err(engine_error)?;
    let is_new = Number::Replica.load(&*view).map_err(in_data)?.is_none();
    let stored = stored.unwrap_or_default();
    let wanted = encode_keys(&config.split_keys);
    if stored == wanted {
        return Ok(());
    }
    if is_new {
        // A start that was refused may have left another list.
        let mut batch = WriteBatch::default();
        batch.push(Modify::Put(Cf::Meta, SPLIT_KEYS_KEY.to_vec(), wanted));
        engine.write(&batch).and_then(|()| engine.sync()).map_err(engine_error)?;
    } else {
        return Err(OpenError::Config(ConfigError {
            field: "split_keys",
            value: format!("a list of {} keys", config.split_keys.len()),
            range: "the list with which this data directory began".to_owned(),
        }));
    }
    Ok(())
}

/// The keys at which data is split.
///
/// # Errors
/// The engine's refusal, or [`Error::Corrupt`].
#[cfg(feature = "server")]
pub(crate) fn stored_split_keys(view: &dyn crate::engine::Snapshot) -> Result<Vec<Vec<u8>>, Error> {
    let stored = view.get(Cf::Meta, SPLIT_KEYS_KEY)?.unwrap_or_default();
    let (mut keys, mut rest) = (Vec::new(), stored.as_slice());
    while let Some((length, behind)) = rest.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((key, behind)) = behind.split_at_checked(length) else { break };
        keys.push(key.to_vec());
        rest = behind;
    }
    if rest.is_empty() { Ok(keys) } else { Err(Error::Corrupt("the split keys cannot be decoded".into())) }
}

/// Each key after its length.
fn encode_keys(keys: &[Vec<u8>]) -> Vec<u8> {
    keys.iter().flat_map(|key| [&(key.len() as u64).to_be_bytes(), key.as_slice()].concat()).collect()
}

/// Makes sure that the data belongs to this replica. Under another id it would break the promises of the first one: it
/// could vote twice.
pub(super) fn identify(engine: &dyn Engine, replica: u64) -> Result<(), Error> {
    match Number::Replica.load(&*engine.snapshot())? {
        Some(owner) if owner == replica => Ok(()),
        Some(owner) => {
            Err(Error::Corrupt(format!("it is the data of replica {owner}, not of replica {replica}").into()))
        }
        None => {
            let mut batch = WriteBatch::default();
            batch.push(Number::Replica.put(replica));
            engine.write(&batch)?;
            Ok(engine.sync()?)
        }
    }
}

/// Makes sure that data belongs to this node. Data that no replica has begun is its own from now on, and so is that of its
/// replica that was never a node's.
#[cfg(feature = "server")]
pub(crate) fn identify_node(parts: &Parts, wanted: NodeIdentity) -> Result<(), OpenError> {
    let Parts { dir, engine, .. } = parts;
    let in_data = |error: Error| OpenError::Corrupt { path: dir.clone(), what: error.to_string() };
    let found = stored_identity(&*engine.snapshot()).map_err(in_data)?;
    if found == Some(wanted) {
        return Ok(());
    }
    if let Some(found) = found.filter(|found| *found != NodeIdentity { cluster_id: None, ..wanted }) {
        return Err(OpenError::OtherNode { path: dir.clone(), found, wanted });
    }
    let mut batch = WriteBatch::default();
    wanted.cluster_id.into_iter().for_each(|id| batch.push(Number::Cluster.put(id)));
    engine.write(&batch).and_then(|()| engine.sync()).map_err(|error| in_data(error.into()))
}

/// Whose data it is, where a replica has begun it.
///
/// # Errors
/// The engine's refusal, or [`Error::Corrupt`].
#[cfg(feature = "server")]
pub(crate) fn stored_identity(view: &dyn crate::engine::Snapshot) -> Result<Option<NodeIdentity>, Error> {
    let cluster_id = Number::Cluster.load(view)?;
    Ok(Number::Replica.load(view)?.map(|node_id| NodeIdentity { cluster_id, node_id }))
}
