//! Queries of the audit trail, and pages of events.

use super::id::AuditId;
use super::record::{AuditEvent, AuditRecord, AuditResult};
use cairn_model::{TextSearch, Timestamp};
use std::net::IpAddr;

/// Selects events. An event must match all filters that are set, exactly.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditQuery {
    /// Events at this time and later.
    pub since: Option<Timestamp>,
    /// Events before this time.
    pub until: Option<Timestamp>,
    /// Events of this principal.
    pub principal: Option<String>,
    /// Events of one of these operations. An empty list selects all operations.
    pub operations: Vec<String>,
    /// Events on this resource, and copies that read it.
    pub resource: Option<String>,
    /// Events on this bucket and its objects, and copies that read one of them.
    pub bucket: Option<String>,
    /// Events on objects with this key in any bucket, and copies that read one.
    pub key: Option<String>,
    /// Events with this result.
    pub result: Option<AuditResult>,
    /// Events from this client address.
    pub source_ip: Option<IpAddr>,
    /// Events of the request with this id.
    pub request_id: Option<String>,
    /// Events with this text in one of their texts or in their address.
    pub contains: Option<TextSearch>,
    /// Events recorded before this one, which comes after them in a page. It may have been deleted.
    pub after: Option<AuditId>,
    /// Most events of a page.
    pub limit: usize,
}

impl AuditQuery {
    /// Returns whether a record matches the filters other than those for time.
    pub(crate) fn matches(&self, record: &AuditRecord) -> bool {
        let text =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        text(&self.request_id, &record.request_id)
            && text(&self.principal, &record.principal)
            && (self.operations.is_empty() || self.operations.contains(&record.operation))
            && self.matches_resource(record)
            && self.result.is_none_or(|wanted| wanted == record.result)
            && self
                .source_ip
                .is_none_or(|wanted| record.source_ip.is_some_and(|found| found == wanted.to_canonical()))
            && self.contains.as_ref().is_none_or(|wanted| contains(record, wanted))
    }

    fn matches_resource(&self, record: &AuditRecord) -> bool {
        let matches = |found: &str| {
            let (bucket, key) = match found.split_once('/') {
                Some((bucket, key)) => (bucket, Some(key)),
                None => (found, None),
            };
            self.resource.as_deref().is_none_or(|wanted| wanted == found)
                && self.bucket.as_deref().is_none_or(|wanted| wanted == bucket)
                && self.key.as_deref().is_none_or(|wanted| Some(wanted) == key)
        };
        matches(&record.resource) || (!record.copy_source.is_empty() && matches(&record.copy_source))
    }

    /// Returns the exclusive upper bound of the keys of events.
    pub(crate) fn end_key(&self) -> [u8; 16] {
        let until = self.until.map_or([0xFF; 16], AuditId::first_key_at);
        self.after.map_or(until, |after| after.0.min(until))
    }

    /// Returns the inclusive lower bound of the keys of events.
    pub(crate) fn start_key(&self) -> [u8; 16] {
        self.since.map_or([0; 16], AuditId::first_key_at)
    }
}

fn contains(record: &AuditRecord, wanted: &TextSearch) -> bool {
    let texts = [
        &record.resource,
        &record.principal,
        &record.operation,
        &record.request_id,
        &record.copy_source,
        &record.detail,
        &record.role,
    ];
    texts.into_iter().any(|text| wanted.is_in(text))
        || wanted.is_in(record.result.name())
        || record.source_ip.is_some_and(|address| wanted.is_in(&address.to_string()))
}

/// A page of events, latest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditPage {
    /// The events. There may be more even if the page is not full or is empty.
    pub events: Vec<AuditEvent>,
    /// [`AuditQuery::after`] for the next page. `None` if there are no more events.
    pub next: Option<AuditId>,
}
