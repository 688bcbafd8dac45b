//! What the programs of this crate have in common: where their data goes, and how they end.

use std::{io, path::Path, process::ExitCode};

use tempfile::TempDir;

use crate::round::Failure;

/// A new directory for a program's data, in `dir` or else where the system keeps temporary files. It is removed when it
/// is dropped.
///
/// # Errors
/// The directory cannot be made.
pub fn data_dir(dir: Option<&Path>) -> io::Result<TempDir> {
    dir.map_or_else(tempfile::tempdir, tempfile::tempdir_in)
}

/// Ends a program: a failure is said on the standard error stream, behind the program's name.
#[must_use]
pub fn end(program: &str, result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}
