//! Audit records of one request: changes before and after, refusals, failed reads.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use cairn_http1::decode;
use cairn_observe::{AuditKind, AuditLog, AuditRecord, AuditResult, Intent, Source};
use cairn_sharing::{recordable_id, recordable_names};
use cairn_tables::StoreFailure;
use http::StatusCode;

use super::authentication::Caller;
use crate::error::AdminError;
use crate::reply::{ChangeRecord, Reply};
use crate::request::path::Segments;

/// The properties of a request that its audit records contain.
pub(crate) struct AuditContext<'r> {
    pub(crate) operation: &'static str,
    pub(crate) segments: Segments<'r>,
    /// `None` for an unauthenticated request.
    pub(crate) caller: Option<&'r Caller>,
    pub(crate) request_id: &'r str,
    pub(crate) client: IpAddr,
}

impl AuditContext<'_> {
    /// Records that a change is about to be made. The record is durable on return: a change that cannot be recorded
    /// must not begin.
    ///
    /// # Errors
    /// `STORAGE_FULL`, and `NOT_READY` when the audit trail cannot record.
    pub(crate) async fn record_intent(
        &self,
        log: &Arc<AuditLog>,
        kind: AuditKind,
    ) -> Result<Intent, AdminError> {
        log.record_intent(kind, self.detailed_record(AuditResult::Allowed, "")).await.map_err(unrecorded)
    }

    /// Records the beginning or the end of a session. On a full disk it is only counted: people must be able to log in and free
    /// space.
    ///
    /// # Errors
    /// `NOT_READY` when the audit trail cannot record. The session must not begin.
    pub(crate) async fn record_session(&self, log: &AuditLog) -> Result<(), AdminError> {
        match log.record_access(&self.credential(), self.detailed_record(AuditResult::Allowed, "")).await {
            Ok(()) | Err(StoreFailure::Full) => Ok(()),
            Err(error) => Err(unrecorded(error)),
        }
    }

    /// Records the outcome of an access that is about to be answered. Returns the answer.
    ///
    /// # Errors
    /// Those of the outcome, and those of [`Self::record_intent`]. The access must not be answered.
    pub(crate) async fn record_access_outcome(
        &self,
        log: &AuditLog,
        outcome: Result<Reply, AdminError>,
    ) -> Result<Reply, AdminError> {
        match outcome {
            Ok(mut reply) => {
                let ChangeRecord { resource, detail, .. } = std::mem::take(&mut reply.record);
                let record = self.detailed_record(AuditResult::Allowed, &detail);
                let resource = resource.unwrap_or(record.resource.clone());
                log.record_access(&self.credential(), AuditRecord { resource, ..record })
                    .await
                    .map_err(unrecorded)?;
                Ok(reply)
            }
            Err(error) => {
                if is_outcome(&error) {
                    let detail = format!("{}: {}", error.code(), error.message());
                    log.offer(
                        Source::Client(self.client),
                        self.detailed_record(AuditResult::Failed, &detail),
                    );
                }
                Err(error)
            }
        }
    }

    /// Records that objects were read. The record is durable soon after.
    ///
    /// # Errors
    /// As [`Self::record_intent`]. What was read must not be answered.
    pub(crate) async fn record_read(&self, log: &AuditLog) -> Result<(), AdminError> {
        log.record_read(self.detailed_record(AuditResult::Allowed, "")).await.map_err(unrecorded)
    }

    /// Records the outcome of a change. An error is recorded if it is an outcome, see [`is_outcome`].
    ///
    /// The record is durable on return. On a full disk the intent alone remains.
    pub(crate) async fn record_outcome(&self, intent: Intent, outcome: Result<ChangeRecord, &AdminError>) {
        let event = match outcome {
            Ok(ChangeRecord { is_without_change: true, .. }) => None,
            Ok(ChangeRecord { resource, detail, .. }) => {
                let record = self.detailed_record(AuditResult::Allowed, &detail);
                Some(AuditRecord { resource: resource.unwrap_or(record.resource.clone()), ..record })
            }
            Err(AdminError::Unauthenticated) => {
                let detail = "the token was deleted or expired while the request was in progress";
                Some(self.detailed_record(AuditResult::Denied, detail))
            }
            Err(AdminError::NoSession(_)) => {
                let detail = "the session ended while the request was in progress";
                Some(self.detailed_record(AuditResult::Denied, detail))
            }
            // The service records every denial.
            Err(AdminError::MissingRight(_)) => None,
            Err(error) if is_outcome(error) => {
                let detail = format!("{}: {}", error.code(), error.message());
                Some(self.detailed_record(AuditResult::Failed, &detail))
            }
            Err(_) => None,
        };
        intent.complete(event).await;
    }

    /// Records that a request was refused because of its credential or role.
    ///
    /// A wrong credential itself is not recorded: it may be a secret that was sent in the wrong place.
    pub(crate) fn record_refusal(&self, log: &AuditLog, has_credential: bool) {
        let detail = match (self.caller, has_credential) {
            (Some(_), _) => AdminError::Forbidden.code(),
            (None, true) => "the credential is not valid",
            (None, false) => "no credential",
        };
        self.record_denial(log, detail);
    }

    /// Records that a request was refused before its caller was known.
    pub(crate) fn record_denial(&self, log: &AuditLog, detail: &str) {
        log.offer(Source::Client(self.client), self.detailed_record(AuditResult::Denied, detail));
    }

    /// Returns a record with a detail, and with the id of the management token or the subject of the person.
    fn detailed_record(&self, result: AuditResult, detail: &str) -> AuditRecord {
        let credential = self.credential();
        let parts = [detail, &credential].into_iter().filter(|part| !part.is_empty());
        let detail = parts.collect::<Vec<_>>().join("; ");
        AuditRecord { detail, ..self.record(result) }
    }

    /// Describes the management token or the person; empty for root and the system token.
    fn credential(&self) -> String {
        self.caller.map(Caller::audited).unwrap_or_default()
    }

    fn record(&self, result: AuditResult) -> AuditRecord {
        let principal = self.caller.map_or(AuditRecord::ANONYMOUS, |caller| &caller.principal);
        AuditRecord {
            role: self.caller.map(|caller| caller.standing.name().to_owned()).unwrap_or_default(),
            resource: self.resource(),
            source_ip: Some(self.client),
            request_id: self.request_id.to_owned(),
            ..AuditRecord::new(principal, self.operation, result)
        }
    }

    /// Returns the variable segments of the path, decoded and joined by slashes: `bucket/key`, or an id. A token of a link that
    /// was sent in place of them is left out.
    fn resource(&self) -> String {
        let decoded = |sent| decode(sent).unwrap_or(Cow::Borrowed(sent));
        let bucket = self.segments.get("bucket").map(decoded);
        let shown = self.segments.iter().map(|(name, sent)| {
            let text = decoded(sent);
            match (name, &bucket) {
                ("bucket", _) => recordable_names(&text, "").0.to_owned(),
                ("key", Some(bucket)) => recordable_names(bucket, &text).1.to_owned(),
                // Whoever makes a rule chooses its id.
                ("rule_id", _) => text.into_owned(),
                _ => recordable_id(&text).to_owned(),
            }
        });
        shown.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("/")
    }
}

/// Returns the answer to a request that cannot be recorded. Nothing was begun, so a later attempt is safe.
fn unrecorded(error: StoreFailure) -> AdminError {
    match error {
        StoreFailure::Failed(_) => AdminError::NotReady("the audit trail cannot be written"),
        other => other.into(),
    }
}

/// Returns whether a failed change is recorded: it was refused because of the state of the store, or it failed on its
/// way and may have been made in part. A request that is itself invalid changed nothing and is not recorded.
fn is_outcome(error: &AdminError) -> bool {
    let status = error.status();
    status.is_server_error() || matches!(status, StatusCode::FORBIDDEN | StatusCode::CONFLICT)
}

/// Audits failed reads of stored data. Outlives the request's head, because a response may fail while it is sent.
pub(crate) struct ReadAudit {
    log: Option<Arc<AuditLog>>,
    record: AuditRecord,
}

impl ReadAudit {
    /// Returns the audit of a request's reads.
    pub(crate) fn new(context: &AuditContext<'_>, log: Option<&Arc<AuditLog>>) -> Self {
        Self { log: log.cloned(), record: context.record(AuditResult::Failed) }
    }

    /// Logs and records that stored data or the device failed the request.
    pub(crate) fn failed(&self, cause: String) {
        let AuditRecord { operation, resource, request_id, .. } = &self.record;
        tracing::error!(target: "service", request_id, operation, cause, "an object could not be read");
        if let Some(log) = &self.log {
            let finding = format!("{operation} {resource}");
            log.offer(Source::Finding(&finding), AuditRecord { detail: cause, ..self.record.clone() });
        }
    }
}
