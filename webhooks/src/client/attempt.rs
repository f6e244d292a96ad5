//! One attempt to deliver an event, and its outcome.

use std::fmt;
use std::time::Duration;

use cairn_model::Timestamp;

use crate::destination::TargetUrl;
use crate::limits::FAILURE_TEXT_BYTES_MAX;
use crate::signature::SigningSecrets;

/// One attempt to deliver an event: everything that the request is made of.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The target.
    pub target: &'a TargetUrl,
    /// The event's id: `x-service-event-id` and `webhook-id`.
    pub event_id: &'a str,
    /// The event's type: `x-service-event-type`.
    pub event_type: &'a str,
    /// The event's time in the form of RFC 3339: `x-service-event-time`.
    pub event_time: &'a str,
    /// The time of this attempt: `webhook-timestamp`.
    pub attempted_at: Timestamp,
    /// The event as JSON.
    pub body: &'a [u8],
    /// The secrets that sign the request.
    pub secrets: SigningSecrets<'a>,
}

/// The result of an attempt. The answer's headers and body are not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The status that the receiver answered with, if it answered.
    pub http_status: Option<u16>,
    /// The failure of the attempt. `None` if and only if the status is 2xx.
    pub error: Option<Failure>,
    /// The time that the receiver asked to wait, at most one hour. Only of failed attempts.
    pub retry_after: Option<Duration>,
    /// The duration of the attempt.
    pub duration: Duration,
}

impl Attempt {
    /// Returns whether the receiver answered 2xx.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.error.is_none()
    }
}

/// The failure of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// At what it failed.
    pub kind: FailureKind,
    /// The description of the failure, for people: at most 256 bytes, without control characters.
    pub text: String,
}

cairn_model::named_enum! {
    /// At what an attempt failed. Named as in records and logs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum FailureKind {
        /// The host name has no address, or the look-up failed.
        Resolve => "resolve",
        /// The target is one that is not allowed: an address or the scheme.
        Refused => "refused",
        /// No connection could be made, or it broke.
        Connect => "connect",
        /// The TLS handshake failed, usually because of the certificate.
        Tls => "tls",
        /// The time limit of the request passed.
        Timeout => "timeout",
        /// The answer was not HTTP, was too large, or its status was not 2xx.
        Response => "response",
    }
}

impl Failure {
    /// Makes a failure. The text may come from elsewhere: it is cut, and its control characters are replaced.
    #[must_use]
    pub fn new(kind: FailureKind, text: impl AsRef<str>) -> Self {
        let mut kept = String::new();
        for letter in text.as_ref().chars() {
            let letter = if letter.is_control() { '\u{fffd}' } else { letter };
            if kept.len() + letter.len_utf8() > FAILURE_TEXT_BYTES_MAX {
                break;
            }
            kept.push(letter);
        }
        Self { kind, text: kept }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Sends deliveries. [`super::Client`] is the real one; tests of the queue have others.
pub trait Sender: Send + Sync {
    /// Makes one attempt. Blocks the calling thread for at most the time limit of requests.
    fn deliver(&self, delivery: &Delivery<'_>) -> Attempt;
}

#[cfg(test)]
mod tests {
    use super::{Failure, FailureKind};

    #[test]
    fn failure_texts_are_bounded_and_have_no_control_characters() {
        assert_eq!(Failure::new(FailureKind::Tls, "a\r\nb").text, "a\u{fffd}\u{fffd}b");
        let long = Failure::new(FailureKind::Tls, "ä".repeat(200)).text;
        assert_eq!((long.len(), long.chars().count()), (256, 128));
    }
}
