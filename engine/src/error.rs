//! Errors of requests to the engine and of opening a store.

use cairn_model::{Timestamp, VersionName};
use std::fmt;
use std::path::PathBuf;

/// The error of a failed request. A failed request has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineError {
    /// The bucket does not exist.
    NoSuchBucket,
    /// A bucket with this name exists.
    BucketAlreadyExists,
    /// The bucket is not empty.
    BucketNotEmpty,
    /// A conflicting change is in progress, for example the deletion of the bucket. The client may retry.
    Conflict,
    /// The object does not exist.
    NoSuchKey,
    /// The object has no such version.
    NoSuchVersion,
    /// The requested version is a delete marker.
    DeleteMarker {
        /// The marker.
        version: VersionName,
        /// The time when it was created.
        last_modified: Timestamp,
    },
    /// The version is locked, or its retention forbids the change.
    ObjectLocked,
    /// The bucket lacks Object Lock, or has it and cannot suspend versioning.
    InvalidBucketState,
    /// The change would exceed a quota.
    QuotaExceeded,
    /// The new quota is below the bucket's usage.
    QuotaBelowUsage,
    /// A version cannot be imported as it is. The text says why.
    ImportConflict(&'static str),
    /// The store has a format version without this. `cairn storage upgrade` raises it.
    NeedsUpgrade {
        /// The refused feature, in the plural.
        feature: &'static str,
        /// Format version of the store.
        found: u32,
        /// First format version that has it.
        needed: u32,
    },
    /// The trial of an upgrade has failed: why. The store is as it was.
    UpgradeRefused(String),
    /// The multipart upload does not exist.
    NoSuchUpload,
    /// The bucket has no lifecycle rule with this id.
    NoSuchLifecycleRule,
    /// The bucket has as many lifecycle rules as it can have.
    TooManyLifecycleRules,
    /// The upload has no part with this number, or a different one.
    InvalidPart(u16),
    /// This condition of the request does not hold.
    PreconditionFailed(Precondition),
    /// The encoded key is too long for a metadata key. Only keys with hundreds of NUL bytes are.
    KeyTooLong,
    /// The payload exceeds the limit for one payload.
    PayloadTooLarge,
    /// No space is left for payload or metadata, or less than the reserve.
    StorageFull,
    /// Too many changes are waiting, or too many concurrent removals interfered.
    Overloaded,
    /// One of its kind is running, and no other may begin: which.
    AlreadyRunning(&'static str),
    /// A record or a block failed its check. Already logged.
    Corrupt(String),
    /// The device failed, or the slice was stopped after a failure. Already logged.
    Io(String),
    /// The store is closing.
    ShuttingDown,
}

cairn_model::named_enum! {
    /// A condition of a write ([`WriteCondition`](crate::WriteCondition)). Named as the header.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Precondition {
        /// `If-Match`, or a condition on the version.
        IfMatch => "If-Match",
        /// `If-None-Match`.
        IfNoneMatch => "If-None-Match",
        /// `x-amz-if-match-size`.
        IfMatchSize => "x-amz-if-match-size",
        /// `x-amz-if-match-last-modified-time`.
        IfMatchLastModifiedTime => "x-amz-if-match-last-modified-time",
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchBucket => f.write_str("the bucket does not exist"),
            Self::BucketAlreadyExists => f.write_str("the bucket already exists"),
            Self::BucketNotEmpty => f.write_str("the bucket is not empty"),
            Self::Conflict => f.write_str("a conflicting change is in progress"),
            Self::NoSuchKey => f.write_str("the object does not exist"),
            Self::NoSuchVersion => f.write_str("the version does not exist"),
            Self::DeleteMarker { version, .. } => write!(f, "version {version} is a delete marker"),
            Self::ObjectLocked => f.write_str("the version is locked"),
            Self::InvalidBucketState => f.write_str("the bucket's Object Lock setting does not allow it"),
            Self::QuotaExceeded => f.write_str("the bucket's quota would be exceeded"),
            Self::QuotaBelowUsage => f.write_str("the bucket holds more than the quota"),
            Self::ImportConflict(why) => f.write_str(why),
            Self::NeedsUpgrade { feature, found, needed } => write!(
                f,
                "the store has format version {found}, and {feature} need version {needed}: run `cairn storage upgrade`, \
                 after which earlier programs cannot open the store"
            ),
            Self::UpgradeRefused(why) => f.write_str(why),
            Self::NoSuchUpload => f.write_str("the multipart upload does not exist"),
            Self::NoSuchLifecycleRule => f.write_str("the lifecycle rule does not exist"),
            Self::TooManyLifecycleRules => {
                f.write_str("the bucket has as many lifecycle rules as it can have")
            }
            Self::InvalidPart(number) => write!(f, "the upload has no such part {number}"),
            Self::PreconditionFailed(condition) => {
                write!(f, "the precondition {} does not hold", condition.name())
            }
            Self::KeyTooLong => f.write_str("the key is too long"),
            Self::PayloadTooLarge => f.write_str("the payload is too large"),
            Self::StorageFull => f.write_str("no space is left"),
            Self::Overloaded => f.write_str("too many changes or copies are waiting"),
            Self::AlreadyRunning(what) => write!(f, "{what} is already running"),
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

/// The error of a store that did not open. The message says what to do.
#[derive(Debug)]
pub enum OpenError {
    /// The folder holds no store.
    NoStore(PathBuf),
    /// Another process uses the data folder.
    Locked(PathBuf),
    /// The master key is not the one that the store was created with.
    WrongMasterKey,
    /// The store was created by a later version of the program.
    FormatTooNew {
        /// Format version of the store.
        found: u32,
        /// Latest format version that this program supports.
        known: u32,
    },
    /// The store has an earlier format version than this program runs.
    FormatTooOld {
        /// Format version of the store.
        found: u32,
        /// Earliest and latest format version that this program runs.
        runs: (u32, u32),
        /// The data folder.
        data_dir: PathBuf,
    },
    /// A file is missing, damaged or belongs to another store.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// The commit log of a slice is missing or damaged. Acknowledged changes would be lost.
    DamagedLog {
        /// The folder of the slice's metadata.
        path: PathBuf,
        /// The damage of the log.
        what: String,
    },
    /// The folder is a copy that was made while the store was held for a backup.
    CopyOfHeldStore {
        /// The folder with the metadata of the backup.
        path: PathBuf,
        /// The moment that the backup shows, RFC 3339.
        held_at: String,
    },
    /// The data folder is on a file system that cannot guarantee durability.
    UnsuitableFileSystem {
        /// The data folder.
        path: PathBuf,
        /// The reason.
        what: &'static str,
    },
    /// The operating system returned an error.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStore(path) => write!(f, "{} holds no store", path.display()),
            Self::Locked(path) => {
                write!(f, "another process is using the data folder {}: stop it, or choose another folder", path.display())
            }
            Self::WrongMasterKey => f.write_str(
                "the credential master key is not the one that this store was created with: start with the original key",
            ),
            Self::FormatTooNew { found, known } => write!(
                f,
                "the store has format version {found}, but this program supports up to version {known}: use a newer program"
            ),
            Self::FormatTooOld { found, runs: (first, last), data_dir } => write!(
                f,
                "the store has format version {found}, but this program runs versions {first} to {last}: stop the server \
                 and run `cairn storage upgrade --data-dir {}`, after which earlier programs cannot open the store",
                data_dir.display()
            ),
            Self::Damaged { path, what } => {
                write!(f, "{}: {what}; nothing was changed: restore the file from a backup", path.display())
            }
            Self::DamagedLog { path, what } => write!(
                f,
                "{}: {what}; nothing was changed: restore the data folder from a backup; without one, run \
                 `cairn storage discard-log` to see what can be kept",
                path.display()
            ),
            Self::CopyOfHeldStore { path, held_at } => write!(
                f,
                "this data folder was copied during the backup of {held_at}; nothing was changed. To continue from the backup, \
                 copy its metadata over the data folder: cp -a {path}/. {folder}/. If the service was stopped when the folder \
                 was copied, remove {path} instead",
                path = path.display(),
                folder = path.parent().unwrap_or(path).display(),
            ),
            Self::UnsuitableFileSystem { path, what } => {
                write!(f, "{}: {what}: use a local file system such as ext4 or XFS", path.display())
            }
            Self::Io { path, doing, error } => write!(f, "{doing} {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

/// Adds the operation and the path to errors while opening a store.
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
            cairn_lmdb::Error::Full => {
                OpenError::Io { path: path.to_owned(), doing, error: std::io::ErrorKind::StorageFull.into() }
            }
            cairn_lmdb::Error::DamagedLog(_) => {
                OpenError::DamagedLog { path: path.to_owned(), what: error.to_string() }
            }
            other => OpenError::Damaged { path: path.to_owned(), what: other.to_string() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{OpenContext as _, OpenError};

    /// The error asked to restore the file from a backup.
    #[test]
    fn a_full_disk_is_no_damage() {
        let opened = Err::<(), _>(cairn_lmdb::Error::Full).doing("opening", std::path::Path::new("/store"));
        assert!(
            matches!(opened, Err(OpenError::Io { error, .. }) if error.kind() == std::io::ErrorKind::StorageFull)
        );
    }
}
