//! Checks the validity period of a certificate.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

/// The reason why a certificate is not valid at a point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValidityFault {
    Expired,
    NotYetValid,
}

impl ValidityFault {
    /// Describes the fault; completes a sentence that begins with the certificate.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Expired => "has expired: clients will refuse it",
            Self::NotYetValid => "is not valid yet: clients will refuse it",
        }
    }
}

/// Returns why a certificate with this validity period is not valid at `now`. All times are seconds since 1970; the period
/// includes both ends.
pub(crate) fn fault_of_validity(validity: &Range<i64>, now: i64) -> Option<ValidityFault> {
    if now > validity.end {
        Some(ValidityFault::Expired)
    } else {
        (now < validity.start).then_some(ValidityFault::NotYetValid)
    }
}

/// Returns the current time in seconds since 1970.
pub(crate) fn unix_now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(now).unwrap_or(i64::MAX)
}
