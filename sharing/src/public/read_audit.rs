//! Audit records of reads through a link: of damage, and of every read if the operator asks for that.
//!
//! Records name the object and the id of the link, never its token.

use crate::types::link::{Link, LinkKind};
use cairn_net::Request;
use cairn_observe::{AuditLog, AuditRecord, AuditResult, Source};
use cairn_tables::StoreFailure;
use std::net::IpAddr;
use std::sync::Arc;

/// The parts of a read's audit record. Kept as long as the response may still fail.
pub(super) struct ReadAudit {
    log: Arc<AuditLog>,
    operation: &'static str,
    /// The object, as `bucket/key`.
    resource: String,
    /// The kind and id of the link.
    link: String,
    request_id: String,
    client: IpAddr,
}

impl ReadAudit {
    /// Collects the parts of a request.
    pub(super) fn new(
        log: &Arc<AuditLog>,
        request: &Request,
        operation: &'static str,
        kind: LinkKind,
        link: &Link,
    ) -> Self {
        Self {
            log: Arc::clone(log),
            operation,
            resource: format!("{}/{}", link.object.bucket, link.object.key),
            link: format!("{} {}", kind.name(), link.id),
            request_id: request.id.clone(),
            client: request.client,
        }
    }

    /// Sets the id of the request, if its client chose it.
    pub(super) fn with_request_id(self, request_id: &str) -> Self {
        Self { request_id: request_id.to_owned(), ..self }
    }

    /// Records a read that is about to be answered (`audit.data_events`).
    ///
    /// # Errors
    /// It cannot be recorded, so it must not be answered.
    pub(super) async fn record_read(self) -> Result<(), StoreFailure> {
        let record = self.record(AuditResult::Allowed, self.link.clone());
        self.log.record_read(record).await
    }

    /// Logs and records that damaged data or the device failed the request.
    pub(super) fn failed(&self, cause: &str) {
        let Self { operation, resource, link, request_id, .. } = self;
        tracing::error!(target: "service::sharing", request_id, operation, cause, link, "a request failed");
        let source = format!("{operation} {resource}");
        self.log
            .offer(Source::Finding(&source), self.record(AuditResult::Failed, format!("{cause}; {link}")));
    }

    fn record(&self, result: AuditResult, detail: String) -> AuditRecord {
        AuditRecord {
            resource: self.resource.clone(),
            source_ip: Some(self.client),
            request_id: self.request_id.clone(),
            detail,
            ..AuditRecord::new(AuditRecord::ANONYMOUS, self.operation, result)
        }
    }
}
