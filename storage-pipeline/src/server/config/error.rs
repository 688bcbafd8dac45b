//! What can be wrong with the configuration of a node.

use std::{error, fmt, io, path::PathBuf};

use crate::{config::ConfigError, protocol::tls::TlsError};

/// What is wrong with the configuration of a node.
#[derive(Debug)]
#[non_exhaustive]
pub enum NodeConfigError {
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's refusal.
        source: io::Error,
    },
    /// The text is no TOML.
    Syntax {
        /// Where, and what was expected there.
        what: String,
    },
    /// The files of TLS hold what they must not.
    Tls {
        /// What that is.
        what: String,
    },
    /// No connection to another node can be made as it is configured.
    Peer {
        /// Its id.
        id: u64,
        /// Why not.
        what: String,
    },
    /// There is no such field.
    UnknownField {
        /// Its name.
        field: String,
        /// The names that there are.
        known: String,
    },
    /// A value is out of its range.
    OutOfRange {
        /// Name of the field.
        field: String,
        /// The value it has.
        value: String,
        /// The range in words.
        range: String,
    },
}

impl fmt::Display for NodeConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Syntax { what } => write!(f, "not TOML: {what}"),
            Self::Tls { what } => write!(f, "TLS: {what}"),
            Self::Peer { id, what } => write!(f, "peer {id} cannot be connected to: {what}"),
            Self::UnknownField { field, known } => {
                write!(f, "there is no field {field}; the fields are {known}")
            }
            Self::OutOfRange { field, value, range } => write!(f, "{field} is {value}, which is not {range}"),
        }
    }
}

impl error::Error for NodeConfigError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<TlsError> for NodeConfigError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Missing { field } => Self::OutOfRange {
                field: field.to_owned(),
                value: "missing".to_owned(),
                range: "a file beside the two others".to_owned(),
            },
            TlsError::Unreadable { path, source } => Self::Unreadable { path, source },
        }
    }
}

impl From<ConfigError> for NodeConfigError {
    fn from(ConfigError { field, value, range }: ConfigError) -> Self {
        Self::OutOfRange { field: field.to_owned(), value, range }
    }
}
