//! What can be asked of the trail, and which events fit.

use super::id::AuditId;
use super::record::{AuditEvent, AuditRecord, AuditResult};
use cairn_model::Timestamp;
use std::net::IpAddr;

/// Which events to give. Filters that are not set let everything through; those that are must fit exactly, all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditQuery {
    /// Events of this time and later.
    pub since: Option<Timestamp>,
    /// Events before this time.
    pub until: Option<Timestamp>,
    /// Who acted.
    pub principal: Option<String>,
    /// What was done.
    pub operation: Option<String>,
    /// On what.
    pub resource: Option<String>,
    /// How it ended.
    pub result: Option<AuditResult>,
    /// Where the request came from.
    pub source_ip: Option<IpAddr>,
    /// The id of the request.
    pub request_id: Option<String>,
    /// Events that were recorded before this one, which need not be there any more.
    pub after: Option<AuditId>,
    /// Most events to give.
    pub limit: usize,
}

impl AuditQuery {
    pub(crate) fn fits(&self, record: &AuditRecord) -> bool {
        let text =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        text(&self.request_id, &record.request_id)
            && text(&self.principal, &record.principal)
            && text(&self.operation, &record.operation)
            && text(&self.resource, &record.resource)
            && self.result.is_none_or(|wanted| wanted == record.result)
            && self
                .source_ip
                .is_none_or(|wanted| record.source_ip.is_some_and(|found| found == wanted.to_canonical()))
    }

    /// Every event that is asked for has a key less than this ...
    pub(crate) fn before(&self) -> [u8; 16] {
        let until = self.until.map_or([0xFF; 16], AuditId::first_at);
        self.after.map_or(until, |after| after.0.min(until))
    }

    /// ... and not less than this.
    pub(crate) fn from(&self) -> [u8; 16] {
        self.since.map_or([0; 16], AuditId::first_at)
    }
}

/// Events of a query, the latest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditPage {
    /// The events. Fewer than the limit, or none, do not mean that there are no more.
    pub events: Vec<AuditEvent>,
    /// Where the next page begins: [`AuditQuery::after`] of the next query. `None`: there are no more events.
    pub next: Option<AuditId>,
}
