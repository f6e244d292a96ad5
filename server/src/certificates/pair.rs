//! Loads a certificate chain and its private key from files.

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cairn_net::{CertificateAndKey, CertificateAndKeyError};
use zeroize::Zeroizing;

use crate::config::PairFiles;
use crate::small_file::{self, SmallFileError};

/// Maximum size of a certificate or key file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Permission bits of other users; a key should have none of them.
const OTHERS: u32 = 0o007;

/// Errors of loading certificates.
#[derive(Debug)]
pub enum CertificateError {
    /// A file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The files do not contain a usable certificate with its key.
    KeyMismatch {
        /// The files.
        files: PairFiles,
        /// The error.
        error: CertificateAndKeyError,
    },
    /// The TLS library could not be set up.
    Library(String),
    /// No thread could be started.
    Threads(io::Error),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } if error.kind() == io::ErrorKind::PermissionDenied => {
                let user = rustix::process::geteuid().as_raw();
                write!(out, "{} cannot be read by user id {user}: {error}", path.display())
            }
            Self::Unreadable { path, error } => write!(out, "{} cannot be read: {error}", path.display()),
            Self::KeyMismatch { files, error } => {
                let (certificate, key) = (files.certificate.display(), files.key.display());
                write!(out, "{certificate} and {key} cannot be used: {error}")
            }
            Self::Library(error) => write!(out, "TLS cannot be set up: {error}"),
            Self::Threads(error) => write!(out, "a thread could not be started: {error}"),
        }
    }
}

impl std::error::Error for CertificateError {}

/// A certificate with its key, and the text of its chain.
pub(super) struct Loaded {
    pub(super) chain: Vec<u8>,
    pub(super) pair: CertificateAndKey,
}

/// Loads a certificate and its key, and checks that they match.
///
/// # Errors
/// [`CertificateError`].
pub(crate) fn load_pair(files: &PairFiles) -> Result<CertificateAndKey, CertificateError> {
    load(files).map(|loaded| loaded.pair)
}

/// Like [`load_pair`], but also returns the text of the chain.
pub(super) fn load(files: &PairFiles) -> Result<Loaded, CertificateError> {
    let read = |path: &Path| {
        read(path).map_err(|error| CertificateError::Unreadable { path: path.to_owned(), error })
    };
    let (chain, key) = (read(&files.certificate)?, Zeroizing::new(read(&files.key)?));
    let pair = CertificateAndKey::from_pem(&chain, &key);
    let pair = pair.map_err(|error| CertificateError::KeyMismatch { files: files.clone(), error })?;
    Ok(Loaded { chain, pair })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    small_file::read(path, FILE_BYTES_MAX).map(|(bytes, _)| bytes).map_err(|error| match error {
        SmallFileError::Io(error) => error,
        SmallFileError::NotRegular => io::Error::other("it is not a regular file"),
        SmallFileError::TooLarge => io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")),
    })
}

/// Returns whether every user of the host can access a private key.
pub(crate) fn is_exposed(key: &Path) -> bool {
    std::fs::metadata(key).is_ok_and(|found| found.permissions().mode() & OTHERS != 0)
}
