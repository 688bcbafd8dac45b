//! A copy of a store's directory, made while nobody can start the store. Files that are never written again are linked, where
//! the file system can do that; all others are copied.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, fcntl_lock, flock},
    io::Errno,
};

use super::CheckError;

/// The copy. It goes when this is dropped, and the store may start again.
pub(super) struct StoreCopy {
    dir: PathBuf,
    _locks: Vec<File>,
}

impl StoreCopy {
    pub(super) fn of(dir: &Path, scratch: &Path) -> Result<Self, CheckError> {
        let copy = scratch.join(format!("check-{}", std::process::id()));
        let mut made = Self { dir: copy.clone(), _locks: Vec::new() };
        // Everything is locked before anything is copied.
        for part in parts(dir)? {
            made._locks.extend(lock(&part.join("LOCK"))?);
        }
        for part in parts(dir)? {
            let to = copy.join(part.file_name().unwrap_or_default());
            fs::create_dir_all(&to).map_err(|source| CheckError::Io { path: to.clone(), source })?;
            for file in entries(&part)?.into_iter().filter(|path| path.is_file()) {
                let name = file.file_name().unwrap_or_default();
                if name != "LOCK" {
                    link_or_copy(&file, &to.join(name))?;
                }
            }
        }
        Ok(made)
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }
}

impl Drop for StoreCopy {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %self.dir.display(), "the copy that was checked is left behind");
        }
    }
}

/// The stores in a directory.
fn parts(dir: &Path) -> Result<Vec<PathBuf>, CheckError> {
    Ok(entries(dir)?.into_iter().filter(|path| path.is_dir()).collect())
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, CheckError> {
    let entries = fs::read_dir(dir).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.map_err(|source| CheckError::Io { path: dir.to_owned(), source })
}

/// Takes the lock of a store, in both ways in which that may be taken, if the store has one.
fn lock(path: &Path) -> Result<Option<File>, CheckError> {
    if !path.exists() {
        return Ok(None);
    }
    let failed = |source: io::Error| CheckError::Io { path: path.to_owned(), source };
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    let operation = FlockOperation::NonBlockingLockExclusive;
    match fcntl_lock(&file, operation).and_then(|()| flock(&file, operation)) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::AGAIN | Errno::ACCESS) => Err(CheckError::InUse { path: path.to_owned() }),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Tables of RocksDB are written once. Everything else may be written to in its place.
fn link_or_copy(from: &Path, to: &Path) -> Result<(), CheckError> {
    let is_final = from.extension().is_some_and(|extension| extension == "sst");
    if is_final && fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to).map(|_| ()).map_err(|source| CheckError::Io { path: from.to_owned(), source })
}
