//! TLS with mutual authentication: what a node shows to whom it meets, and which authority it believes. Hands on the
//! settings for both sides of a connection.

use std::{error, fmt, fs, io, path::PathBuf, time::Duration};

#[cfg(feature = "server")]
use tonic::transport::ServerTlsConfig;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// How long the other side may take to greet.
const GREETING: Duration = Duration::from_secs(3);

/// Files in PEM. With all three, every connection is encrypted and both sides prove who they are; with none, neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the authority that both sides believe.
    pub authority: Option<PathBuf>,
    /// This side's certificate, with those between it and the authority. It has to name the host that others connect to.
    pub certificate: Option<PathBuf>,
    /// The key that belongs to it.
    pub key: Option<PathBuf>,
}

/// What the files hold.
#[derive(Clone)]
pub(crate) struct Tls {
    authority: Certificate,
    identity: Identity,
}

impl fmt::Debug for Tls {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Why there is no TLS.
#[derive(Debug)]
pub enum TlsError {
    /// A file is not named, and another one is.
    Missing {
        /// Name of the field.
        field: &'static str,
    },
    /// A file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's refusal.
        source: io::Error,
    },
}

impl TlsFiles {
    /// All three files, or the first that is missing beside another one.
    ///
    /// # Errors
    /// The name of its field.
    pub(crate) fn all(&self) -> Result<Option<[&PathBuf; 3]>, &'static str> {
        match (&self.authority, &self.certificate, &self.key) {
            (None, None, None) => Ok(None),
            (Some(authority), Some(certificate), Some(key)) => Ok(Some([authority, certificate, key])),
            (None, ..) => Err("tls_authority"),
            (_, None, _) => Err("tls_certificate"),
            (_, _, None) => Err("tls_key"),
        }
    }

    /// Reads the files, if there are any. What they hold is looked at when it is used.
    ///
    /// # Errors
    /// One of them is missing or cannot be read.
    pub(crate) fn read(&self) -> Result<Option<Tls>, TlsError> {
        let missing = |field| TlsError::Missing { field };
        let Some([authority, certificate, key]) = self.all().map_err(missing)? else { return Ok(None) };
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|source| TlsError::Unreadable { path: path.clone(), source })
        };
        Ok(Some(Tls {
            authority: Certificate::from_pem(read(authority)?),
            identity: Identity::from_pem(read(certificate)?, read(key)?),
        }))
    }
}

impl Tls {
    /// For connections that others make. Whoever has no certificate of the authority is refused.
    #[cfg(feature = "server")]
    pub(crate) fn server(&self) -> ServerTlsConfig {
        let config = ServerTlsConfig::new().identity(self.identity.clone());
        config.client_ca_root(self.authority.clone()).timeout(GREETING)
    }

    /// For connections that this side makes.
    pub(crate) fn client(&self) -> ClientTlsConfig {
        let config = ClientTlsConfig::new().identity(self.identity.clone());
        config.ca_certificate(self.authority.clone()).timeout(GREETING)
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { field } => write!(f, "{field}: it is missing beside the two other files"),
            Self::Unreadable { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl error::Error for TlsError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Missing { .. } => None,
            Self::Unreadable { source, .. } => Some(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_all_three_files_or_none_and_says_which_is_missing() {
        assert!(TlsFiles::default().read().unwrap().is_none());
        let file = || Some(PathBuf::from("/nowhere/file.pem"));
        let all = TlsFiles { authority: file(), certificate: file(), key: file() };
        assert!(all.read().err().unwrap().to_string().contains("/nowhere/file.pem"));
        for (files, field) in [
            (TlsFiles { authority: None, ..all.clone() }, "tls_authority"),
            (TlsFiles { certificate: None, ..all.clone() }, "tls_certificate"),
            (TlsFiles { key: None, ..all.clone() }, "tls_key"),
        ] {
            assert!(files.read().err().unwrap().to_string().starts_with(field));
        }
    }
}
