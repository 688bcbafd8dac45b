//! Why a node cannot be started.

use std::{error, fmt, io};

use super::config::NodeConfigError;
use crate::error::OpenError;

/// Why a node could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum NodeError {
    /// Its configuration is wrong.
    Config(NodeConfigError),
    /// It cannot listen where it should.
    Listen {
        /// Where that is.
        address: String,
        /// The operating system's refusal.
        source: io::Error,
    },
    /// The operating system gives it no threads.
    Threads(io::Error),
    /// Its store cannot be opened.
    Open(OpenError),
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(why) => write!(f, "configuration: {why}"),
            Self::Listen { address, source } => write!(f, "cannot listen on {address}: {source}"),
            Self::Threads(source) => write!(f, "no threads for the server: {source}"),
            Self::Open(why) => write!(f, "{why}"),
        }
    }
}

impl error::Error for NodeError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Config(why) => Some(why),
            Self::Listen { source, .. } | Self::Threads(source) => Some(source),
            Self::Open(why) => Some(why),
        }
    }
}
