//! Errors of sharing.

use crate::schema::SCHEMA;
use crate::types::link::LinkKind;
use cairn_tables::StoreFailure;
use std::fmt;
use std::time::Duration;

/// The error of a request about links. A failed change has no effect, on disk or in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkError {
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
        /// The limited things, in the plural.
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// The store of links failed, or cannot answer now.
    Store(StoreFailure),
}

impl fmt::Display for LinkError {
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
            Self::Store(failure) => out.write_str(&failure.message(&SCHEMA)),
        }
    }
}

impl std::error::Error for LinkError {}

cairn_tables::convert_store_failures!(LinkError);

impl LinkError {
    /// Returns the error of a store that does not answer for this reason.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::Store(StoreFailure::Failed(reason.into()))
    }
}

/// The error of a share that was not unlocked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnlockError {
    /// The share has no password.
    NotProtected,
    /// The password is wrong.
    Incorrect,
    /// Too many wrong passwords came from this client, or for this share. The password was not checked.
    TooManyAttempts {
        /// The time when an attempt is allowed again.
        retry_after: Duration,
    },
    /// Too many passwords wait to be checked. This one was not checked.
    Busy,
    /// The service is ending, or the operating system has no thread.
    Unavailable,
}
