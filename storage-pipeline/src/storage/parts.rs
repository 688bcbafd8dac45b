//! The two stores under a pipeline, and how they are opened on disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    engine::{Engine, rocks::RocksEngine},
    error::OpenError,
    raftstore::log_storage::{LogEngine, RocksLog},
};

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
        let failed = |source: io::Error| OpenError::Io { path: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(failed)?;
        let engine = Arc::new(RocksEngine::open(&dir.join("data"))?);
        let log = Box::new(RocksLog::open(&dir.join("log"))?);
        // The names of the two directories must survive a power loss as their contents do.
        fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
        Ok(Self { dir: dir.to_owned(), engine, log })
    }
}
