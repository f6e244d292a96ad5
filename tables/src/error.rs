//! Errors that all small stores share.

use crate::schema::StoreSchema;
use cairn_lmdb::{EnvironmentOpenError, Error};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The error of a small store that did not answer a query or make a change. A change that failed has no effect, on disk or in
/// memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreFailure {
    /// The disk is full. A later attempt may succeed.
    Full,
    /// Too many queries or changes are waiting.
    Overloaded,
    /// A record is damaged, or the device failed, now or earlier. After a failure of the device nothing is changed until the
    /// next start.
    Failed(String),
    /// The store is closing.
    Closing,
}

impl StoreFailure {
    /// Returns the message that names the store.
    #[must_use]
    pub fn message(&self, schema: &StoreSchema) -> String {
        let name = schema.name;
        match self {
            Self::Full | Self::Overloaded => format!("{self} for {name}"),
            Self::Failed(reason) => format!("{name} failed: {reason}"),
            Self::Closing => self.to_string(),
        }
    }
}

impl fmt::Display for StoreFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Full => "no space is left",
            Self::Overloaded => "too many requests are waiting",
            Self::Failed(reason) => reason,
            Self::Closing => "the service is shutting down",
        })
    }
}

impl std::error::Error for StoreFailure {}

impl From<Error> for StoreFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::Full => Self::Full,
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<io::Error> for StoreFailure {
    /// The operating system has no random bytes or no thread. Nothing was changed.
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Converts failures of a small store into the error of a crate, which has a variant `Store(StoreFailure)`.
#[macro_export]
macro_rules! convert_store_failures {
    ($error:ty) => {
        impl From<$crate::StoreFailure> for $error {
            fn from(failure: $crate::StoreFailure) -> Self {
                Self::Store(failure)
            }
        }

        impl From<cairn_lmdb::Error> for $error {
            fn from(error: cairn_lmdb::Error) -> Self {
                Self::Store(error.into())
            }
        }

        impl From<std::io::Error> for $error {
            fn from(error: std::io::Error) -> Self {
                Self::Store(error.into())
            }
        }
    };
}

/// The error of a small store that did not open. Nothing was changed. The message says what the operator can do.
#[derive(Debug)]
pub struct StoreOpenError {
    schema: &'static StoreSchema,
    folder: PathBuf,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    /// The data file is missing, damaged or belongs to another store.
    Damaged(String),
    /// The operating system reported an error.
    Io(io::Error),
}

impl StoreOpenError {
    /// Returns the error of a store that is damaged, for the reason `what`.
    #[must_use]
    pub fn damaged(schema: &'static StoreSchema, folder: &Path, what: String) -> Self {
        Self { schema, folder: folder.to_owned(), reason: Reason::Damaged(what) }
    }

    /// Returns the error of a store that the operating system has not opened.
    #[must_use]
    pub fn io(schema: &'static StoreSchema, folder: &Path, error: io::Error) -> Self {
        Self { schema, folder: folder.to_owned(), reason: Reason::Io(error) }
    }

    pub(crate) fn of(schema: &'static StoreSchema, folder: &Path, error: EnvironmentOpenError) -> Self {
        match error {
            EnvironmentOpenError::Lmdb(Error::Io(error)) => Self::io(schema, folder, error),
            other => Self::damaged(schema, folder, other.to_string()),
        }
    }

    /// Returns the error of the operating system, if it is the reason.
    #[must_use]
    pub const fn io_error(&self) -> Option<&io::Error> {
        match &self.reason {
            Reason::Damaged(_) => None,
            Reason::Io(error) => Some(error),
        }
    }
}

impl fmt::Display for StoreOpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, folder) = (self.schema.name, self.folder.display());
        match &self.reason {
            Reason::Damaged(what) => write!(
                out,
                "{folder}: {name} cannot be opened: {what}. Nothing was changed. Restore the folder from a backup. To {}, move \
                 the folder away and create it again with an empty file {folder}/{}",
                self.schema.fresh_start,
                cairn_lmdb::UNMADE_MARKER
            ),
            Reason::Io(error) => write!(out, "{name} in {folder} cannot be opened: {error}"),
        }
    }
}

impl std::error::Error for StoreOpenError {}
