//! Audit records and their on-disk format.
//!
//! # Format of a record, version 1 (integers little-endian)
//! ```text
//! offset  size  content
//! 0       1     result: 0 allowed, 1 denied, 2 failed
//! 1       ...   seven texts, each a u16 length in bytes and UTF-8: principal, role, operation, resource, source address,
//!               request id, detail. A missing text has length 0
//! ```
//! The key is the event's id, 16 bytes, which contains its time.
//!
//! # Format of a record, version 2
//! As version 1, and an eighth text after the detail: the source of a copy. Only records with a source are written so.

use super::id::AuditId;
use super::limits::{DETAIL_BYTES_MAX, NAME_BYTES_MAX, RESOURCE_BYTES_MAX};
use crate::request_id::REQUEST_ID_BYTES_MAX;
use std::net::IpAddr;

/// Version byte of the records of events without a copy source.
const EVENT_VERSION: u8 = 1;
/// Version byte of the records of events with a copy source.
const COPY_EVENT_VERSION: u8 = 2;

cairn_model::named_enum! {
    /// The result of the action that an event describes. Named as in responses and filters.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum AuditResult {
        /// The action was done.
        Allowed => "allowed",
        /// The action was refused.
        Denied => "denied",
        /// The action was attempted and failed.
        Failed => "failed",
    }
}

/// The contents of an audit event. Empty texts are missing values. Texts that are too long are cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditRecord {
    /// The principal that acted: `system`, `root`, an account, [`AuditRecord::ANONYMOUS`] for unauthenticated requests, or
    /// [`AuditRecord::SERVICE`] for actions of the service itself.
    pub principal: String,
    /// The management role of the principal.
    pub role: String,
    /// The operation that was done or attempted.
    pub operation: String,
    /// The resource: a bucket, `bucket/key`, or the name of another resource.
    pub resource: String,
    /// The object that a copy reads, as `bucket/key`. Empty for everything that is not a copy.
    pub copy_source: String,
    /// The result.
    pub result: AuditResult,
    /// The address of the client.
    pub source_ip: Option<IpAddr>,
    /// The id of the request, as in its response and its log line.
    pub request_id: String,
    /// Further information for people. Never contains a secret.
    pub detail: String,
}

impl AuditRecord {
    /// The principal of requests that were not authenticated.
    pub const ANONYMOUS: &str = "anonymous";
    /// The principal of actions of the service itself.
    pub const SERVICE: &str = "service";

    /// Makes a record with empty optional fields.
    #[must_use]
    pub fn new(principal: &str, operation: &str, result: AuditResult) -> Self {
        Self {
            principal: principal.to_owned(),
            role: String::new(),
            operation: operation.to_owned(),
            resource: String::new(),
            copy_source: String::new(),
            result,
            source_ip: None,
            request_id: String::new(),
            detail: String::new(),
        }
    }

    /// Makes the replacement for a record that cannot be decoded.
    pub(crate) fn damaged() -> Self {
        let detail = "this record failed its check and is not shown".to_owned();
        Self { detail, ..Self::new(Self::SERVICE, "audit.damaged", AuditResult::Failed) }
    }

    /// Encodes the record into `out` and returns its version.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> u8 {
        out.clear();
        out.push(self.result as u8);
        let source = self.source_ip.map(|address| address.to_canonical().to_string()).unwrap_or_default();
        let texts = [
            (&self.principal, NAME_BYTES_MAX),
            (&self.role, NAME_BYTES_MAX),
            (&self.operation, NAME_BYTES_MAX),
            (&self.resource, RESOURCE_BYTES_MAX),
            (&source, NAME_BYTES_MAX),
            (&self.request_id, REQUEST_ID_BYTES_MAX),
            (&self.detail, DETAIL_BYTES_MAX),
        ];
        let copy_source = (!self.copy_source.is_empty()).then_some((&self.copy_source, RESOURCE_BYTES_MAX));
        for (text, bytes_max) in texts.into_iter().chain(copy_source) {
            let text = cut(text, bytes_max);
            let length = u16::try_from(text.len()).expect("every text is cut to less than 64 KiB");
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        if copy_source.is_some() { COPY_EVENT_VERSION } else { EVENT_VERSION }
    }

    /// Decodes a record. Returns `None` if its version or format is unknown.
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
        let copy_source = match version {
            EVENT_VERSION => String::new(),
            COPY_EVENT_VERSION => text()?,
            _ => return None,
        };
        let source_ip = if source.is_empty() { None } else { Some(source.parse().ok()?) };
        let record =
            Self { principal, role, operation, resource, copy_source, result, source_ip, request_id, detail };
        rest.is_empty().then_some(record)
    }
}

/// Cuts `text` to at most `bytes_max` bytes, between characters.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// An event of the trail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEvent {
    /// The id, which contains the time.
    pub id: AuditId,
    /// The contents.
    pub record: AuditRecord,
}

#[cfg(test)]
mod tests {
    use super::{AuditRecord, AuditResult, COPY_EVENT_VERSION, EVENT_VERSION};
    use proptest::prelude::*;

    fn record() -> AuditRecord {
        AuditRecord {
            principal: "p".to_owned(),
            role: "r".to_owned(),
            operation: "o".to_owned(),
            resource: "b/k".to_owned(),
            copy_source: String::new(),
            result: AuditResult::Failed,
            source_ip: Some("::ffff:10.0.0.1".parse().unwrap()),
            request_id: "id".to_owned(),
            detail: String::new(),
        }
    }

    #[test]
    fn the_on_disk_format_does_not_change() {
        let mut bytes = Vec::new();
        assert_eq!(record().encode(&mut bytes), EVENT_VERSION);
        assert_eq!(bytes, b"\x02\x01\0p\x01\0r\x01\0o\x03\0b/k\x08\x0010.0.0.1\x02\0id\0\0");
        let read = AuditRecord::decode(EVENT_VERSION, &bytes).unwrap();
        assert_eq!(read, AuditRecord { source_ip: Some("10.0.0.1".parse().unwrap()), ..record() });
        assert_eq!(AuditRecord::decode(2, &bytes), None);
        assert_eq!(AuditRecord::decode(1, &bytes[..bytes.len() - 1]), None);

        let copy = AuditRecord { copy_source: "s/k".to_owned(), ..read };
        assert_eq!(copy.encode(&mut bytes), COPY_EVENT_VERSION);
        assert_eq!(bytes, b"\x02\x01\0p\x01\0r\x01\0o\x03\0b/k\x08\x0010.0.0.1\x02\0id\0\0\x03\0s/k");
        assert_eq!(AuditRecord::decode(COPY_EVENT_VERSION, &bytes), Some(copy));
        assert_eq!(AuditRecord::decode(EVENT_VERSION, &bytes), None);
        assert_eq!(AuditRecord::decode(3, &bytes), None);
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
        fn decoding_any_bytes_does_not_panic(version: u8, bytes: Vec<u8>) {
            let _ = AuditRecord::decode(version, &bytes);
        }

        #[test]
        fn short_texts_round_trip(principal in ".{0,50}", detail in ".{0,100}") {
            let record = AuditRecord { principal, detail, source_ip: None, ..record() };
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            prop_assert_eq!(AuditRecord::decode(1, &bytes), Some(record));
        }
    }
}
