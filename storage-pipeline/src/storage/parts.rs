//! The two stores under a pipeline, and how they are opened on disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "raft-engine")]
use crate::raftstore::log_storage::RaftEngineLog;
use crate::{
    config::RaftLog,
    engine::{Engine, rocks::RocksEngine},
    error::OpenError,
    raftstore::log_storage::{LogEngine, RocksLog},
};

/// Bytes that must be free. RocksDB writes some tens of kilobytes about itself whenever it opens, and a build of it with
/// assertions ends the process when it cannot.
const ROOM_BYTES: usize = 512 << 10;

/// The two stores under a pipeline: the data and the raft log.
pub struct Parts {
    /// Where the parts are, for error messages.
    pub dir: PathBuf,
    /// The data.
    pub engine: Arc<dyn Engine>,
    /// The raft log.
    pub log: Box<dyn LogEngine>,
}

impl Parts {
    /// Opens both as RocksDB instances in `dir`, creating what is missing.
    ///
    /// # Errors
    /// What is wrong with the directory or one of the instances.
    pub fn on_disk(dir: &Path) -> Result<Self, OpenError> {
        Self::on_disk_with(dir, RaftLog::RocksDb)
    }

    /// Opens both in `dir`, creating what is missing: the data as a RocksDB instance, and this kind of raft log.
    ///
    /// # Errors
    /// What is wrong with the directory or one of the stores; a raft log of another kind is there.
    pub fn on_disk_with(dir: &Path, kind: RaftLog) -> Result<Self, OpenError> {
        let failed = |source: io::Error| OpenError::Io { path: dir.to_owned(), source };
        let log_dir = log_dir(dir, kind)?;
        create_dir(dir).map_err(failed)?;
        check_room(dir).map_err(failed)?;
        let engine = Arc::new(RocksEngine::open(&dir.join("data"))?);
        let log: Box<dyn LogEngine> = match kind {
            RaftLog::RocksDb => Box::new(RocksLog::open(&log_dir)?),
            #[cfg(feature = "raft-engine")]
            RaftLog::RaftEngine => Box::new(RaftEngineLog::open(&log_dir)?),
        };
        // The names of the two directories must survive a power loss as their contents do.
        fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
        Ok(Self { dir: dir.to_owned(), engine, log })
    }
}

/// Where each kind of raft log is, whether this build can open it or not. The name of its directory is how a data
/// directory remembers its kind.
const PLACES: [(&str, &str); 2] = [("log", "RocksDB"), ("log-raft-engine", "raft-engine")];

/// The kind of raft log that a directory has; the default where it has none.
///
/// # Errors
/// This build cannot open that kind.
#[cfg(feature = "server")]
pub(crate) fn kind_in(dir: &Path) -> Result<RaftLog, OpenError> {
    let Some((place, found)) = PLACES.into_iter().find(|(place, _)| dir.join(place).exists()) else {
        return Ok(RaftLog::default());
    };
    let wanted = RaftLog::default().name();
    found.parse().map_err(|_| OpenError::OtherRaftLog { path: dir.join(place), found, wanted })
}

/// Where a kind of log is, in a directory that has no log of another kind.
fn log_dir(dir: &Path, kind: RaftLog) -> Result<PathBuf, OpenError> {
    let wanted = kind.name();
    let mut own = dir.to_owned();
    for (place, found) in PLACES {
        let path = dir.join(place);
        if found == wanted {
            own = path;
        } else if path.exists() {
            return Err(OpenError::OtherRaftLog { path, found, wanted });
        }
    }
    Ok(own)
}

/// Makes a directory whose name survives a power loss, as do the names of those above it that are made with it.
fn create_dir(dir: &Path) -> io::Result<()> {
    let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let missing = dir.ancestors().take_while(is_missing).count();
    fs::create_dir_all(dir)?;
    fs::canonicalize(dir)?
        .ancestors()
        .skip(1)
        .take(missing)
        .try_for_each(|above| fs::File::open(above)?.sync_all())
}

/// Refuses a disk that is full while that is still an ordinary error.
fn check_room(dir: &Path) -> io::Result<()> {
    let file = dir.join("room");
    let written = fs::write(&file, vec![0; ROOM_BYTES]);
    written.and(fs::remove_file(&file))
}
