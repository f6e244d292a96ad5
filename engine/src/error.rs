//! What requests to the engine, and opening a store, can fail with.

use cairn_model::{Timestamp, VersionName};
use std::fmt;
use std::path::PathBuf;

/// Why the engine refused or failed a request. Nothing of a failed request has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineError {
    /// There is no such bucket.
    NoSuchBucket,
    /// There is a bucket of this name.
    BucketAlreadyExists,
    /// The bucket holds something.
    BucketNotEmpty,
    /// A concurrent change is under way, for example the deletion of the bucket: the client may try again.
    Conflict,
    /// There is no such object.
    NoSuchKey,
    /// There is no such version of the object.
    NoSuchVersion,
    /// What was asked for is a delete marker.
    DeleteMarker {
        /// The marker.
        version: VersionName,
        /// When it was made.
        last_modified: Timestamp,
    },
    /// The version is locked, or its retention may not be changed so.
    ObjectLocked,
    /// The bucket has no object lock, or has it and therefore keeps versioning.
    InvalidBucketState,
    /// A quota would be passed.
    QuotaExceeded,
    /// A quota would lie below what the bucket holds.
    QuotaBelowUsage,
    /// There is no such multipart upload.
    NoSuchUpload,
    /// The upload has no such part, or another one under this number.
    InvalidPart(u16),
    /// A condition of the request does not hold.
    PreconditionFailed,
    /// The key's encoded form does not fit a metadata key: only keys with hundreds of NUL bytes.
    KeyTooLong,
    /// The payload is larger than one payload may be.
    PayloadTooLarge,
    /// No space for payload or metadata, or less than the reserve.
    StorageFull,
    /// More changes wait than the queue holds.
    Overloaded,
    /// A record or a block failed its check. Logged where it was found.
    Corrupt(String),
    /// The device failed, or the slice was stopped after a failure. Logged where it was found.
    Io(String),
    /// The store is closing.
    ShuttingDown,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchBucket => f.write_str("the bucket does not exist"),
            Self::BucketAlreadyExists => f.write_str("the bucket exists already"),
            Self::BucketNotEmpty => f.write_str("the bucket is not empty"),
            Self::Conflict => f.write_str("a conflicting change is in progress"),
            Self::NoSuchKey => f.write_str("the object does not exist"),
            Self::NoSuchVersion => f.write_str("the version does not exist"),
            Self::DeleteMarker { version, .. } => write!(f, "version {version} is a delete marker"),
            Self::ObjectLocked => f.write_str("the version is locked"),
            Self::InvalidBucketState => f.write_str("the bucket's object lock does not allow it"),
            Self::QuotaExceeded => f.write_str("the bucket's quota would be passed"),
            Self::QuotaBelowUsage => f.write_str("the bucket holds more than the quota"),
            Self::NoSuchUpload => f.write_str("the multipart upload does not exist"),
            Self::InvalidPart(number) => write!(f, "the upload has no such part {number}"),
            Self::PreconditionFailed => f.write_str("a precondition does not hold"),
            Self::KeyTooLong => f.write_str("the key is too long"),
            Self::PayloadTooLarge => f.write_str("the payload is too large"),
            Self::StorageFull => f.write_str("no space is left"),
            Self::Overloaded => f.write_str("too many changes are waiting"),
            Self::Corrupt(what) => write!(f, "stored data failed its check: {what}"),
            Self::Io(what) => write!(f, "storage failure: {what}"),
            Self::ShuttingDown => f.write_str("the store is closing"),
        }
    }
}

impl std::error::Error for EngineError {}

impl From<cairn_lmdb::Error> for EngineError {
    fn from(error: cairn_lmdb::Error) -> Self {
        match error {
            cairn_lmdb::Error::Full => Self::StorageFull,
            cairn_lmdb::Error::Corrupt { .. } => Self::Corrupt(error.to_string()),
            other => Self::Io(other.to_string()),
        }
    }
}

impl From<crate::codec::InvalidRecord> for EngineError {
    fn from(error: crate::codec::InvalidRecord) -> Self {
        Self::Corrupt(format!("a record has {}", error.0))
    }
}

/// Why a store did not open. The text says what to do about it.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has the data folder.
    Locked(PathBuf),
    /// The master key is not the one that the store was made with.
    WrongMasterKey,
    /// The store was made by a later program.
    FormatTooNew {
        /// Format version found.
        found: u32,
        /// Latest version that this program knows.
        known: u32,
    },
    /// A file is missing, damaged or belongs to another store.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The data folder lies on a file system that cannot keep the promises.
    UnsuitableFileSystem {
        /// The data folder.
        path: PathBuf,
        /// Why not.
        what: &'static str,
    },
    /// The operating system refused.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Its answer.
        error: std::io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked(path) => {
                write!(f, "another process is using the data folder {}: stop it, or choose another folder", path.display())
            }
            Self::WrongMasterKey => f.write_str(
                "the credential master key is not the one this store was made with: start with the original key",
            ),
            Self::FormatTooNew { found, known } => write!(
                f,
                "the store has format version {found}, this program knows up to {known}: start a newer program"
            ),
            Self::Damaged { path, what } => {
                write!(f, "{}: {what}; nothing was changed: restore the file from a backup", path.display())
            }
            Self::UnsuitableFileSystem { path, what } => {
                write!(f, "{}: {what}: use a local file system such as ext4 or XFS", path.display())
            }
            Self::Io { path, doing, error } => write!(f, "{doing} {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

/// Gives I/O errors of opening their file and their purpose.
pub(crate) trait OpenContext<T> {
    fn doing(self, doing: &'static str, path: &std::path::Path) -> Result<T, OpenError>;
}

impl<T> OpenContext<T> for std::io::Result<T> {
    fn doing(self, doing: &'static str, path: &std::path::Path) -> Result<T, OpenError> {
        self.map_err(|error| OpenError::Io { path: path.to_owned(), doing, error })
    }
}

impl<T> OpenContext<T> for Result<T, cairn_lmdb::Error> {
    fn doing(self, doing: &'static str, path: &std::path::Path) -> Result<T, OpenError> {
        self.map_err(|error| match error {
            cairn_lmdb::Error::Io(error) => OpenError::Io { path: path.to_owned(), doing, error },
            other => OpenError::Damaged { path: path.to_owned(), what: other.to_string() },
        })
    }
}
