//! Why a visitor of a share is refused.

use crate::denied::DeniedReason;
use crate::error::{SharingError, UnlockError};
use crate::types::link::LinkStatus;
use cairn_engine::EngineError;
use cairn_http1::StatusCode;
use cairn_tables::StoreFailure;
use std::time::Duration;

/// How long a visitor waits after the service had no capacity.
const BUSY_RETRY: Duration = Duration::from_secs(2);

/// Why a request is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// No share has this token, or the path names nothing.
    NotFound,
    /// The share was revoked, has expired or is exhausted.
    Gone(LinkStatus),
    /// The object, its version or its bucket does not exist any more.
    ObjectMissing,
    /// The password was not given.
    Locked,
    /// The password is wrong.
    PasswordIncorrect,
    /// Too many passwords were tried, or wait to be checked.
    TooManyAttempts {
        /// When the next attempt is allowed.
        retry_after: Duration,
    },
    /// A page of another site sent the form.
    CrossSite,
    /// A browser wants to use the content as part of a program, such as a script.
    Destination,
    /// A browser wants to load the content before somebody asked for it.
    Prefetch,
    /// The method is not one of these.
    MethodNotAllowed(&'static str),
    /// The request is invalid. Holds a sentence.
    Invalid(StatusCode, &'static str),
    /// A condition of the request does not hold.
    PreconditionFailed,
    /// The range is outside of the object. Holds its size.
    RangeNotSatisfiable(u64),
    /// The disk is full, so that the download cannot be counted.
    Full,
    /// The service cannot answer now. Holds a sentence.
    NotReady(&'static str),
    /// A defect or damage, already logged.
    Internal,
}

impl Refusal {
    /// Returns the error code.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "SHARE_NOT_FOUND",
            Self::Gone(_) => "SHARE_GONE",
            Self::ObjectMissing => "OBJECT_NOT_FOUND",
            Self::Locked => "SHARE_LOCKED",
            Self::PasswordIncorrect => "SHARE_PASSWORD_INCORRECT",
            Self::TooManyAttempts { .. } => "TOO_MANY_REQUESTS",
            Self::CrossSite | Self::Destination | Self::Prefetch => "FORBIDDEN",
            Self::MethodNotAllowed(_) => "METHOD_NOT_ALLOWED",
            Self::Invalid(StatusCode::PAYLOAD_TOO_LARGE, _) => "PAYLOAD_TOO_LARGE",
            Self::Invalid(..) => "INVALID_REQUEST",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::RangeNotSatisfiable(_) => "RANGE_NOT_SATISFIABLE",
            Self::Full => "STORAGE_FULL",
            Self::NotReady(_) => "NOT_READY",
            Self::Internal => "INTERNAL_ERROR",
        }
    }

    /// Returns the status.
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound | Self::ObjectMissing => StatusCode::NOT_FOUND,
            Self::Gone(_) => StatusCode::GONE,
            Self::Locked | Self::PasswordIncorrect => StatusCode::UNAUTHORIZED,
            Self::TooManyAttempts { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::CrossSite | Self::Destination | Self::Prefetch => StatusCode::FORBIDDEN,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Invalid(status, _) => *status,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::RangeNotSatisfiable(_) => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Full => StatusCode::INSUFFICIENT_STORAGE,
            Self::NotReady(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the message for people who write programs.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::NotFound => "no share has this URL".to_owned(),
            Self::Gone(LinkStatus::Revoked) => "the share was revoked".to_owned(),
            Self::Gone(LinkStatus::Exhausted) => "the share was downloaded as often as allowed".to_owned(),
            Self::Gone(_) => "the share has expired".to_owned(),
            Self::ObjectMissing => "the object of the share does not exist any more".to_owned(),
            Self::Locked => {
                "the share has a password: POST {\"password\": \"…\"} to its URL with /unlock, and send the cookie or the \
                 header x-service-unlock with the unlock_token"
                    .to_owned()
            }
            Self::PasswordIncorrect => "the password is not the password of the share".to_owned(),
            Self::TooManyAttempts { retry_after } => {
                format!("too many passwords were tried: try again in {} seconds", seconds(*retry_after))
            }
            Self::CrossSite => "a page of another site sent this request".to_owned(),
            Self::Destination => {
                "the content of a share cannot be a script, a style sheet or a plug-in of a page".to_owned()
            }
            Self::Prefetch => "loading the content in advance would count as a download".to_owned(),
            Self::MethodNotAllowed(allow) => format!("this route accepts only {allow}"),
            Self::Invalid(_, message) | Self::NotReady(message) => (*message).to_owned(),
            Self::PreconditionFailed => "a condition of the request does not hold".to_owned(),
            Self::RangeNotSatisfiable(size) => {
                format!("the range is outside of the object, which has {size} bytes")
            }
            Self::Full => "no space is left to count the download".to_owned(),
            Self::Internal => "the request failed; the log has details".to_owned(),
        }
    }

    /// Returns the value of `Retry-After`, in seconds, if the request may succeed later.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::TooManyAttempts { retry_after } => Some(seconds(*retry_after)),
            Self::NotReady(_) => Some(seconds(BUSY_RETRY)),
            _ => None,
        }
    }

    /// Returns how the refusal is counted, if it denies access.
    pub(crate) const fn reason(&self) -> Option<DeniedReason> {
        match self {
            Self::NotFound => Some(DeniedReason::NotFound),
            Self::Gone(status) => DeniedReason::of(*status),
            Self::ObjectMissing => Some(DeniedReason::ObjectMissing),
            Self::Locked => Some(DeniedReason::Locked),
            Self::PasswordIncorrect => Some(DeniedReason::Password),
            Self::TooManyAttempts { .. } => Some(DeniedReason::Attempts),
            Self::CrossSite | Self::Destination => Some(DeniedReason::Destination),
            Self::Prefetch
            | Self::MethodNotAllowed(_)
            | Self::Invalid(..)
            | Self::PreconditionFailed
            | Self::RangeNotSatisfiable(_)
            | Self::Full
            | Self::NotReady(_)
            | Self::Internal => None,
        }
    }
}

/// Rounds up to whole seconds, at least one.
fn seconds(duration: Duration) -> u64 {
    duration.as_millis().div_ceil(1000).clamp(1, u128::from(u32::MAX)).try_into().unwrap_or(u64::MAX)
}

impl From<UnlockError> for Refusal {
    fn from(error: UnlockError) -> Self {
        match error {
            UnlockError::NotProtected => Self::Invalid(
                StatusCode::BAD_REQUEST,
                "the share has no password: there is nothing to unlock",
            ),
            UnlockError::Incorrect => Self::PasswordIncorrect,
            UnlockError::TooManyAttempts { retry_after } => Self::TooManyAttempts { retry_after },
            UnlockError::Busy => Self::TooManyAttempts { retry_after: BUSY_RETRY },
            UnlockError::Unavailable => Self::NotReady("passwords cannot be checked now"),
        }
    }
}

impl From<SharingError> for Refusal {
    fn from(error: SharingError) -> Self {
        match error {
            SharingError::Store(StoreFailure::Full) => Self::Full,
            SharingError::Store(StoreFailure::Overloaded) => {
                Self::NotReady("too many downloads wait to be counted")
            }
            SharingError::Store(StoreFailure::Closing) => Self::NotReady("the service is shutting down"),
            SharingError::NotFound(_) => Self::NotFound,
            error => {
                tracing::error!(target: "service::sharing", %error, "a share could not be read");
                Self::Internal
            }
        }
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NoSuchBucket
            | EngineError::NoSuchKey
            | EngineError::NoSuchVersion
            | EngineError::DeleteMarker { .. }
            | EngineError::KeyTooLong => Self::ObjectMissing,
            EngineError::Overloaded => Self::NotReady("too many requests are waiting"),
            EngineError::ShuttingDown => Self::NotReady("the service is shutting down"),
            error => {
                tracing::error!(target: "service::sharing", %error, "the object of a share could not be read");
                Self::Internal
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal, UnlockError};
    use std::time::Duration;

    #[test]
    fn waits_are_whole_seconds() {
        for (millis, expected) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (3_600_000, 3600)] {
            let error = UnlockError::TooManyAttempts { retry_after: Duration::from_millis(millis) };
            assert_eq!(Refusal::from(error).retry_after(), Some(expected));
        }
    }
}
