//! Errors of sharing.

use crate::types::link::LinkKind;
use cairn_lmdb::Unanswered;
use std::path::PathBuf;
use std::sync::mpsc::TrySendError;
use std::time::Duration;
use std::{fmt, io};

/// Why a request about links failed. A failed change has no effect, on disk or in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SharingError {
    /// The link does not exist.
    NotFound(LinkKind),
    /// A value is invalid. Holds a sentence for the client.
    Invalid(String),
    /// The policy requires an expiry, and none was given.
    ExpirationRequired,
    /// The policy limits the lifetime to this many days.
    LifetimeTooLong {
        /// `sharing.maximum_lifetime_days`.
        days: u64,
    },
    /// The configuration turns embeds off.
    EmbedsDisabled,
    /// A limit is reached.
    TooMany {
        /// What is limited, in the plural.
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// The disk is full. A later attempt may succeed.
    Full,
    /// Too many requests are waiting.
    Overloaded,
    /// The device failed, now or earlier. Nothing is changed until the next start.
    Failed(String),
    /// The service is ending.
    ShuttingDown,
}

impl fmt::Display for SharingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(kind) => write!(out, "the {} does not exist", kind.name()),
            Self::Invalid(what) => out.write_str(what),
            Self::ExpirationRequired => out
                .write_str("every share and embed must expire (sharing.require_expiration): set expires_at"),
            Self::LifetimeTooLong { days } => write!(
                out,
                "a share or embed may exist for at most {days} days (sharing.maximum_lifetime_days): set expires_at to an \
                 earlier time"
            ),
            Self::EmbedsDisabled => out.write_str("embeds are turned off (sharing.embeds_enabled)"),
            Self::TooMany { what, max } => write!(out, "the limit of {max} {what} is reached"),
            Self::Full => out.write_str("no space is left for shares and embeds"),
            Self::Overloaded => out.write_str("too many requests about shares and embeds are waiting"),
            Self::Failed(reason) => write!(out, "the store of shares and embeds failed: {reason}"),
            Self::ShuttingDown => out.write_str("the service is shutting down"),
        }
    }
}

impl std::error::Error for SharingError {}

impl From<cairn_lmdb::Error> for SharingError {
    fn from(error: cairn_lmdb::Error) -> Self {
        match error {
            cairn_lmdb::Error::Full => Self::Full,
            other => Self::Failed(other.to_string()),
        }
    }
}

impl<T> From<TrySendError<T>> for SharingError {
    /// A thread's queue is full or closed.
    fn from(refused: TrySendError<T>) -> Self {
        match refused {
            TrySendError::Full(_) => Self::Overloaded,
            TrySendError::Disconnected(_) => Self::ShuttingDown,
        }
    }
}

impl From<Unanswered> for SharingError {
    /// A query had no answer. Nothing was changed.
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Overloaded => Self::Overloaded,
            Unanswered::Closed => Self::ShuttingDown,
            Unanswered::Panicked => Self::Failed("a query panicked".to_owned()),
        }
    }
}

impl From<io::Error> for SharingError {
    /// The operating system has no random bytes or no thread. Nothing was changed.
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Why a share was not unlocked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnlockError {
    /// The share has no password.
    NotProtected,
    /// The password is wrong.
    Incorrect,
    /// Too many wrong passwords came from this client, or for this share. The password was not checked.
    TooManyAttempts {
        /// When an attempt is allowed again.
        retry_after: Duration,
    },
    /// Too many passwords wait to be checked. This one was not checked.
    Busy,
    /// The service is ending, or the operating system has no thread.
    Unavailable,
}

/// Why the store of links did not open. The message says what the operator can do.
#[derive(Debug)]
pub enum SharingOpenError {
    /// The data file is missing, damaged or belongs to another store. Nothing was changed.
    Damaged {
        /// The folder of the links.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The operating system reported an error.
    Io {
        /// The folder of the links.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl fmt::Display for SharingOpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, what } => write!(
                out,
                "{folder}: shares and embeds cannot be opened: {what}. Nothing was changed. Restore the folder from a backup. \
                 To start without shares and embeds, move the folder away and create it again with an empty file \
                 {folder}/{marker}",
                folder = path.display(),
                marker = cairn_lmdb::UNMADE_MARKER
            ),
            Self::Io { path, error } => {
                write!(out, "shares and embeds in {} cannot be opened: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for SharingOpenError {}
