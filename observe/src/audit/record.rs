//! What one audit event says, and its form on disk.
//!
//! # Form of a record, version 1 (integers little-endian)
//! ```text
//! offset  size  what
//! 0       1     result: 0 allowed, 1 denied, 2 failed
//! 1       ...   seven texts, each u16 length in bytes and UTF-8: principal, role, operation, resource, source address,
//!               request id, detail. No text: length 0
//! ```
//! The key is the event's id, 16 bytes, which holds its time.

use super::id::AuditId;
use super::limits::{DETAIL_BYTES_MAX, NAME_BYTES_MAX, RESOURCE_BYTES_MAX};
use crate::request_id::REQUEST_ID_BYTES_MAX;
use std::net::IpAddr;

/// Version byte of the records of events.
pub(crate) const EVENT_VERSION: u8 = 1;

/// How what an event describes ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuditResult {
    /// It was done.
    Allowed,
    /// It was refused.
    Denied,
    /// It was attempted and failed.
    Failed,
}

impl AuditResult {
    /// Every result.
    pub const ALL: [Self; 3] = [Self::Allowed, Self::Denied, Self::Failed];

    /// The word in answers and filters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// What is recorded of one action. Texts that are empty are left out; texts that are too long are cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditRecord {
    /// Who acted: `system`, `root`, an account; [`AuditRecord::ANONYMOUS`] when nobody was authenticated, and
    /// [`AuditRecord::SERVICE`] when the service did on its own.
    pub principal: String,
    /// The management role under which it was done.
    pub role: String,
    /// What was done or attempted.
    pub operation: String,
    /// On what: a bucket, `bucket/key`, or another thing that has a name.
    pub resource: String,
    /// How it ended.
    pub result: AuditResult,
    /// Where the request came from.
    pub source_ip: Option<IpAddr>,
    /// The id of the request, as in its response and its log line.
    pub request_id: String,
    /// What else is worth knowing, for people. Never a secret.
    pub detail: String,
}

impl AuditRecord {
    /// The principal of requests that were not authenticated.
    pub const ANONYMOUS: &str = "anonymous";
    /// The principal of what the service does on its own.
    pub const SERVICE: &str = "service";

    /// A record of `operation`; the rest is filled in by the caller.
    #[must_use]
    pub fn new(principal: &str, operation: &str, result: AuditResult) -> Self {
        Self {
            principal: principal.to_owned(),
            role: String::new(),
            operation: operation.to_owned(),
            resource: String::new(),
            result,
            source_ip: None,
            request_id: String::new(),
            detail: String::new(),
        }
    }

    /// What stands in the place of a record that cannot be read.
    pub(crate) fn damaged() -> Self {
        let detail = "this record failed its check and is not shown".to_owned();
        Self { detail, ..Self::new(Self::SERVICE, "audit.damaged", AuditResult::Failed) }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        out.push(self.result as u8);
        let source = self.source_ip.map(|address| address.to_canonical().to_string()).unwrap_or_default();
        for (text, bytes_max) in [
            (&self.principal, NAME_BYTES_MAX),
            (&self.role, NAME_BYTES_MAX),
            (&self.operation, NAME_BYTES_MAX),
            (&self.resource, RESOURCE_BYTES_MAX),
            (&source, NAME_BYTES_MAX),
            (&self.request_id, REQUEST_ID_BYTES_MAX),
            (&self.detail, DETAIL_BYTES_MAX),
        ] {
            let text = cut(text, bytes_max);
            let length = u16::try_from(text.len()).unwrap_or(0);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// `None`: not a record of this form.
    pub(crate) fn decode(version: u8, body: &[u8]) -> Option<Self> {
        let (&result, mut rest) = body.split_first()?;
        let result = *AuditResult::ALL.get(usize::from(result))?;
        let mut text = || {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let (text, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            rest = after;
            Some(std::str::from_utf8(text).ok()?.to_owned())
        };
        let [principal, role, operation, resource, source, request_id, detail] =
            [text()?, text()?, text()?, text()?, text()?, text()?, text()?];
        let source_ip = if source.is_empty() { None } else { Some(source.parse().ok()?) };
        let record = Self { principal, role, operation, resource, result, source_ip, request_id, detail };
        (version == EVENT_VERSION && rest.is_empty()).then_some(record)
    }
}

/// The longest beginning of `text` that has at most `bytes_max` bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

/// One event of the trail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEvent {
    /// Its id, which holds its time.
    pub id: AuditId,
    /// What it says.
    pub record: AuditRecord,
}

#[cfg(test)]
mod tests {
    use super::{AuditRecord, AuditResult, EVENT_VERSION};
    use proptest::prelude::*;

    fn record() -> AuditRecord {
        AuditRecord {
            principal: "p".to_owned(),
            role: "r".to_owned(),
            operation: "o".to_owned(),
            resource: "b/k".to_owned(),
            result: AuditResult::Failed,
            source_ip: Some("::ffff:10.0.0.1".parse().unwrap()),
            request_id: "id".to_owned(),
            detail: String::new(),
        }
    }

    #[test]
    fn the_form_on_disk_is_pinned() {
        let mut bytes = Vec::new();
        record().encode(&mut bytes);
        assert_eq!(bytes, b"\x02\x01\0p\x01\0r\x01\0o\x03\0b/k\x08\x0010.0.0.1\x02\0id\0\0");
        let read = AuditRecord::decode(EVENT_VERSION, &bytes).unwrap();
        assert_eq!(read, AuditRecord { source_ip: Some("10.0.0.1".parse().unwrap()), ..record() });
        assert_eq!(AuditRecord::decode(2, &bytes), None);
        assert_eq!(AuditRecord::decode(1, &bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = AuditRecord { detail: "é".repeat(1000), principal: "€".repeat(1000), ..record() };
        let mut bytes = Vec::new();
        long.encode(&mut bytes);
        let read = AuditRecord::decode(1, &bytes).unwrap();
        assert_eq!((read.detail.len(), read.principal.len()), (512, 255));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_without_a_panic(bytes: Vec<u8>) {
            let _ = AuditRecord::decode(1, &bytes);
        }

        #[test]
        fn short_texts_come_back(principal in ".{0,50}", detail in ".{0,100}") {
            let record = AuditRecord { principal, detail, source_ip: None, ..record() };
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            prop_assert_eq!(AuditRecord::decode(1, &bytes), Some(record));
        }
    }
}
