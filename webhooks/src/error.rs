//! Errors of webhooks.

use cairn_lmdb::Unanswered;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a request about webhooks failed. A failed change has no effect, on disk or in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WebhookError {
    /// The webhook does not exist.
    WebhookNotFound,
    /// The delivery does not exist, or is so old that it was removed.
    DeliveryNotFound,
    /// The event of the delivery is no longer stored, so it cannot be delivered again.
    EventNotFound,
    /// The webhook is disabled, so nothing can be delivered to it.
    Disabled,
    /// The target is not allowed. Holds a sentence for the client.
    InvalidTarget(String),
    /// Another value is invalid. Holds a sentence for the client.
    Invalid(String),
    /// A limit is reached.
    TooMany {
        /// What is limited, in the plural.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The disk is full. A later attempt may succeed.
    Full,
    /// Too many requests are waiting.
    Overloaded,
    /// The device failed, now or earlier. Nothing is changed or delivered until the next start.
    Failed(String),
    /// The service is ending.
    ShuttingDown,
}

impl fmt::Display for WebhookError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WebhookNotFound => out.write_str("webhook was not found"),
            Self::DeliveryNotFound => out.write_str("delivery was not found"),
            Self::EventNotFound => out.write_str("the event of this delivery is no longer stored"),
            Self::Disabled => out.write_str("the webhook is disabled; enable it first"),
            Self::InvalidTarget(what) | Self::Invalid(what) => out.write_str(what),
            Self::TooMany { what, max } => write!(out, "the limit of {max} {what} is reached"),
            Self::Full => out.write_str("no space is left for webhooks and their deliveries"),
            Self::Overloaded => out.write_str("too many requests about webhooks are waiting"),
            Self::Failed(reason) => write!(out, "the store of webhooks failed: {reason}"),
            Self::ShuttingDown => out.write_str("webhooks are closing"),
        }
    }
}

impl std::error::Error for WebhookError {}

impl From<cairn_lmdb::Error> for WebhookError {
    fn from(error: cairn_lmdb::Error) -> Self {
        match error {
            cairn_lmdb::Error::Full => Self::Full,
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<Unanswered> for WebhookError {
    /// A query had no answer. Nothing was changed.
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Overloaded => Self::Overloaded,
            Unanswered::Closed => Self::ShuttingDown,
            Unanswered::Panicked => Self::Failed("a query panicked".to_owned()),
        }
    }
}

impl From<io::Error> for WebhookError {
    /// The operating system has no random bytes or no thread. Nothing was changed.
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Why the store of webhooks did not open. The message says what the operator can do.
#[derive(Debug)]
pub enum WebhookOpenError {
    /// The data file is missing, damaged or belongs to another store. Nothing was changed.
    Damaged {
        /// The folder of the webhooks.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The operating system reported an error.
    Io {
        /// The folder of the webhooks.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl fmt::Display for WebhookOpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, what } => write!(
                out,
                "{folder}: the webhooks cannot be opened: {what}. Nothing was changed. Restore the folder from a backup. To \
                 start without webhooks and their deliveries, move the folder away and create it again with an empty file \
                 {folder}/{marker}",
                folder = path.display(),
                marker = cairn_lmdb::UNMADE_MARKER
            ),
            Self::Io { path, error } => {
                write!(out, "the webhooks in {} cannot be opened: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for WebhookOpenError {}
