//! The refusals of shares.

use crate::denied::DeniedReason;
use crate::error::{LinkError, UnlockError};
use crate::public::refusal::{BUSY_SECONDS, Refusal};
use crate::types::link::LinkStatus;
use cairn_engine::EngineError;
use cairn_http1::{StatusCode, unsatisfied_content_range};
use cairn_tables::StoreFailure;
use std::time::Duration;

/// No share has this token, or the path names nothing.
pub(super) fn not_found() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "SHARE_NOT_FOUND", "no share has this URL")
        .because(DeniedReason::NotFound)
}

/// The share was revoked, has expired or is exhausted.
pub(super) fn gone(status: LinkStatus) -> Refusal {
    let text = match status {
        LinkStatus::Revoked => "the share was revoked",
        LinkStatus::Exhausted => "the share was downloaded as often as allowed",
        LinkStatus::Expired | LinkStatus::Active => "the share has expired",
    };
    Refusal::new(StatusCode::GONE, "SHARE_GONE", text).because(DeniedReason::of(status))
}

/// The object, its version or its bucket does not exist any more.
fn object_missing() -> Refusal {
    let text = "the object of the share does not exist any more";
    Refusal::new(StatusCode::NOT_FOUND, "OBJECT_NOT_FOUND", text).because(DeniedReason::ObjectMissing)
}

/// The policies of the member who created the share do not allow this visit.
pub(super) fn author() -> Refusal {
    forbidden("the creator of the share may no longer read the object, or not from your address")
        .because(DeniedReason::Author)
}

/// The password was not given.
pub(super) fn locked() -> Refusal {
    let text = "the share has a password: POST {\"password\": \"…\"} to its URL with /unlock, and send the cookie or the header \
                x-service-unlock with the unlock_token";
    Refusal::new(StatusCode::UNAUTHORIZED, "SHARE_LOCKED", text).because(DeniedReason::Locked)
}

/// Too many passwords were tried, or wait to be checked.
fn too_many_attempts(seconds: u32) -> Refusal {
    let text = format!("too many passwords were tried: try again in {seconds} seconds");
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", text)
        .because(DeniedReason::Attempts)
        .retry_after(seconds)
}

/// A page of another site sent the form.
pub(super) fn cross_site() -> Refusal {
    forbidden("a page of another site sent this request").because(DeniedReason::Destination)
}

/// A browser wants to use the content as part of a program, such as a script.
pub(super) fn destination() -> Refusal {
    forbidden("the content of a share cannot be a script, a style sheet or a plug-in of a page")
        .because(DeniedReason::Destination)
}

/// A browser wants to load the content before somebody asked for it.
pub(super) fn prefetch() -> Refusal {
    forbidden("loading the content in advance would count as a download")
}

fn forbidden(text: &'static str) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, "FORBIDDEN", text)
}

/// The route has only these methods.
pub(super) fn method_not_allowed(allowed: &'static str) -> Refusal {
    let text = format!("this route accepts only {allowed}");
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", text).with_header("allow", allowed)
}

/// The request is invalid.
pub(super) fn invalid(status: StatusCode, text: &'static str) -> Refusal {
    let is_large = status == StatusCode::PAYLOAD_TOO_LARGE;
    Refusal::new(status, if is_large { "PAYLOAD_TOO_LARGE" } else { "INVALID_REQUEST" }, text)
}

/// A condition of the request does not hold.
pub(super) fn precondition_failed() -> Refusal {
    let text = "a condition of the request does not hold";
    Refusal::new(StatusCode::PRECONDITION_FAILED, "PRECONDITION_FAILED", text)
}

/// The range is outside of the object, which has this size.
pub(super) fn range(size: u64) -> Refusal {
    let text = format!("the range is outside of the object, which has {size} bytes");
    Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, "RANGE_NOT_SATISFIABLE", text)
        .with_header("content-range", unsatisfied_content_range(size))
}

/// The service cannot answer now.
pub(super) fn not_ready(text: &'static str) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", text).retry_after(BUSY_SECONDS)
}

/// A defect or damage, already logged.
pub(super) fn internal() -> Refusal {
    let text = "the request failed; the log has details";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", text)
}

/// The share was not unlocked.
pub(super) fn of_unlock(error: UnlockError) -> Refusal {
    match error {
        UnlockError::NotProtected => {
            invalid(StatusCode::BAD_REQUEST, "the share has no password: there is nothing to unlock")
        }
        UnlockError::Incorrect => {
            let text = "the password is not the password of the share";
            Refusal::new(StatusCode::UNAUTHORIZED, "SHARE_PASSWORD_INCORRECT", text)
                .because(DeniedReason::Password)
        }
        UnlockError::TooManyAttempts { retry_after } => too_many_attempts(whole_seconds(retry_after)),
        UnlockError::Busy => too_many_attempts(BUSY_SECONDS),
        UnlockError::Unavailable => not_ready("passwords cannot be checked now"),
    }
}

/// The share could not be read, or its download not be counted.
pub(super) fn of_store(error: LinkError) -> Refusal {
    match error {
        LinkError::Store(StoreFailure::Full) => Refusal::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "STORAGE_FULL",
            "no space is left to count the download",
        ),
        LinkError::Store(StoreFailure::Overloaded) => not_ready("too many downloads wait to be counted"),
        LinkError::Store(StoreFailure::Closing) => not_ready("the service is shutting down"),
        LinkError::NotFound(_) => not_found(),
        error => {
            tracing::error!(target: "service::sharing", %error, "a share could not be read");
            internal()
        }
    }
}

/// The object could not be read.
pub(super) fn of_engine(error: EngineError) -> Refusal {
    match error {
        EngineError::NoSuchBucket
        | EngineError::NoSuchKey
        | EngineError::NoSuchVersion
        | EngineError::DeleteMarker { .. }
        | EngineError::KeyTooLong => object_missing(),
        EngineError::Overloaded => not_ready("too many requests are waiting"),
        EngineError::ShuttingDown => not_ready("the service is shutting down"),
        error => {
            tracing::error!(target: "service::sharing", %error, "the object of a share could not be read");
            internal()
        }
    }
}

/// Rounds up to whole seconds, at least one.
fn whole_seconds(duration: Duration) -> u32 {
    duration.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{UnlockError, of_unlock};
    use std::time::Duration;

    #[test]
    fn waits_are_whole_seconds() {
        for (millis, expected) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (3_600_000, 3600)] {
            let error = UnlockError::TooManyAttempts { retry_after: Duration::from_millis(millis) };
            assert_eq!(of_unlock(error).retry_after, Some(expected));
        }
    }
}
