//! Errors of webhooks.

use crate::schema::SCHEMA;
use cairn_tables::StoreFailure;
use std::fmt;

/// The error of a request about webhooks. A failed change has no effect, on disk or in memory.
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
        /// The limited things, in the plural.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The store of webhooks failed, or cannot answer now.
    Store(StoreFailure),
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
            Self::Store(failure) => out.write_str(&failure.message(&SCHEMA)),
        }
    }
}

impl std::error::Error for WebhookError {}

cairn_tables::convert_store_failures!(WebhookError);

impl WebhookError {
    /// Returns the error of webhooks that do not answer for this reason.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::Store(StoreFailure::Failed(reason.into()))
    }
}
