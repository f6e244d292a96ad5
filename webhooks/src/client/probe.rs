//! The report of a test delivery: every step, and what was seen.

use std::time::Duration;

use super::attempt::Attempt;

/// A test delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The result of the attempt.
    pub attempt: Attempt,
    /// The steps up to the one that failed, or all of them. Plain HTTP has no step for TLS.
    pub steps: Vec<StepReport>,
}

/// One step of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// The step.
    pub step: Step,
    /// Whether it succeeded.
    pub ok: bool,
    /// The observation, for people: at most 256 bytes.
    pub detail: String,
    /// The duration of the step.
    pub duration: Duration,
}

cairn_model::named_enum! {
    /// The steps of a delivery, in their order. Named as in the management API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Step {
        /// Finding the addresses of the host.
        Resolve => "resolve",
        /// Judging the scheme and every address.
        Check => "check",
        /// Opening a connection to one of them.
        Connect => "connect",
        /// The TLS handshake, with the check of the certificate.
        Tls => "tls",
        /// Sending the request and receiving the status.
        Response => "response",
    }
}
