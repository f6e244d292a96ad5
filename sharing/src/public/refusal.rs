//! Refusals of visitors.
//!
//! `share/refusals.rs` and `embed/refusals.rs` make all refusals. Shares answer with JSON or a page, embeds with a line of
//! text.

use crate::denied::DeniedReason;
use cairn_http1::{ResponseHead, StatusCode};
use cairn_tables::StoreFailure;
use std::borrow::Cow;

/// Seconds after which a visitor may try again when the service had no capacity.
pub(super) const BUSY_SECONDS: u32 = 2;

/// A refusal of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// The error code, for programs and the log.
    pub(super) code: &'static str,
    /// For people who write programs or pages. It contains neither the token nor anything else of the link.
    pub(super) text: Cow<'static, str>,
    /// For the metric of denied accesses; `None` for failures and for what says nothing about the visitor.
    pub(super) reason: Option<DeniedReason>,
    /// Seconds after which the request may succeed.
    pub(super) retry_after: Option<u32>,
    /// The header that belongs to the status.
    header: Option<(&'static str, String)>,
    /// The origin whose scripts may read the text of an embed's refusal.
    pub(super) readable_by: Option<String>,
}

impl Refusal {
    /// Returns a refusal for which nobody has to be counted as denied.
    pub(super) fn new(status: StatusCode, code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        Self { status, code, text, reason: None, retry_after: None, header: None, readable_by: None }
    }

    /// Returns the refusal of a request that the audit trail cannot record, so that it must not be answered.
    pub(super) fn unrecorded(failure: &StoreFailure) -> Self {
        match failure {
            StoreFailure::Full => {
                let text = "no space is left to record the request";
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "STORAGE_FULL", text)
            }
            _ => {
                let text = "the audit trail cannot record the request";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", text).retry_after(BUSY_SECONDS)
            }
        }
    }

    /// Sets the reason for the metric.
    pub(super) fn because(mut self, reason: impl Into<Option<DeniedReason>>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Sets after how many seconds the request may succeed.
    pub(super) const fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Sets the header that belongs to the status.
    pub(super) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.header = Some((name, value.into()));
        self
    }

    /// Writes the headers that belong to the refusal.
    pub(super) fn write_headers(&self, head: &mut ResponseHead) {
        if let Some((name, value)) = &self.header {
            head.header(name, value);
        }
        if let Some(seconds) = self.retry_after {
            head.header("retry-after", seconds.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visitors were told to try again soon while the disk was full.
    #[test]
    fn request_that_cannot_be_recorded_is_told_apart_by_its_cause() {
        let full = Refusal::unrecorded(&StoreFailure::Full);
        assert_eq!((full.status.as_u16(), full.code, full.retry_after), (507, "STORAGE_FULL", None));
        for failure in
            [StoreFailure::Overloaded, StoreFailure::Closing, StoreFailure::Failed("EIO".to_owned())]
        {
            let other = Refusal::unrecorded(&failure);
            assert_eq!((other.status.as_u16(), other.code), (503, "NOT_READY"), "{failure}");
            assert_eq!(other.retry_after, Some(BUSY_SECONDS));
        }
    }
}
