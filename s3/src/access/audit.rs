//! Audit records of the data plane: denied requests, and requests that failed because of damaged data or the device.
//!
//! Requests do not wait for these records, and each source of records is rate-limited. `recording.rs` records requests
//! that are carried out.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::copy_source::CopySource;
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::request::target::Target;
use cairn_identity::{Authentication, Principal};
use cairn_net::Request;
use cairn_observe::{AuditKind, AuditLog, AuditRecord, AuditResult, Intent, Source};
use cairn_tables::StoreFailure;
use std::net::IpAddr;
use std::sync::Arc;

/// The parts of a request that an audit record needs. Kept as long as the response may still fail.
pub(crate) struct AuditContext {
    log: Arc<AuditLog>,
    authentication: Option<Authentication>,
    operation: &'static str,
    resource: String,
    /// The object that a copy reads.
    copy_source: String,
    request_id: String,
    client: IpAddr,
}

impl AuditContext {
    pub(crate) fn new(
        log: &Arc<AuditLog>,
        request: &Request,
        target: Option<&Target>,
        authentication: Option<&Authentication>,
        operation: &'static str,
    ) -> Self {
        Self {
            log: Arc::clone(log),
            authentication: authentication.cloned(),
            operation,
            resource: target.map(resource_of).unwrap_or_default(),
            copy_source: if COPY_OPERATIONS.contains(&operation) {
                copy_source_of(request)
            } else {
                String::new()
            },
            request_id: request.id.clone(),
            client: request.client,
        }
    }

    /// Records an authentication or authorization failure with the credential used. An unknown access key is not
    /// recorded: it may be a mistyped secret.
    pub(crate) fn refused(&self, error: &S3Error) {
        let claimed = error.elements().iter().find(|(name, _)| *name == "AWSAccessKeyId");
        let detail = match claimed {
            Some((_, key)) if error.code() == "SignatureDoesNotMatch" => {
                format!("{}: access key {key}", error.code())
            }
            _ => match error.denied_because() {
                Some(because) => format!("{}: {because}", error.code()),
                None => error.code().to_owned(),
            },
        };
        self.offer(AuditResult::Denied, detail);
    }

    /// Records that a change is about to begin. The record is durable on return.
    ///
    /// # Errors
    /// `InsufficientStorage`, `SlowDown` or `ServiceUnavailable`. The change must not begin.
    pub(crate) async fn record_intent(&self, kind: AuditKind) -> S3Result<Intent> {
        let record = self.record(AuditResult::Allowed, String::new());
        self.log.record_intent(kind, record).await.map_err(unrecorded)
    }

    /// Records a read that is about to be answered.
    ///
    /// # Errors
    /// `SlowDown` or `ServiceUnavailable`. The read must not be answered.
    pub(crate) async fn record_read(&self) -> S3Result<()> {
        let record = self.record(AuditResult::Allowed, String::new());
        self.log.record_read(record).await.map_err(unrecorded)
    }

    /// Records an attempt, limited by client.
    pub(crate) fn offer(&self, result: AuditResult, detail: String) {
        self.log.offer(Source::Client(self.client), self.record(result, detail));
    }

    /// Describes which credential of an account was used; empty for root.
    fn credential(&self) -> String {
        match &self.authentication {
            Some(Authentication { principal: Principal::Account(_), access_key, .. }) => {
                format!("access key {access_key}")
            }
            _ => String::new(),
        }
    }

    /// Records that damaged data or the device failed the request.
    pub(crate) fn failed(&self, cause: &str) {
        let source = format!("{} {}", self.operation, self.resource);
        self.log.offer(Source::Finding(&source), self.record(AuditResult::Failed, cause.to_owned()));
    }

    /// Returns a record. Its detail also names the credential of an account.
    pub(crate) fn record(&self, result: AuditResult, mut detail: String) -> AuditRecord {
        let principal = match &self.authentication {
            Some(Authentication { principal, .. }) => &principal.to_string(),
            None => AuditRecord::ANONYMOUS,
        };
        let credential = self.credential();
        if !detail.is_empty() && !credential.is_empty() {
            detail.push_str("; ");
        }
        detail.push_str(&credential);
        AuditRecord {
            resource: self.resource.clone(),
            copy_source: self.copy_source.clone(),
            source_ip: Some(self.client),
            request_id: self.request_id.clone(),
            detail,
            ..AuditRecord::new(principal, self.operation, result)
        }
    }
}

/// The operations whose records name a second object.
const COPY_OPERATIONS: [&str; 2] = ["CopyObject", "UploadPartCopy"];

/// Returns the object that a copy reads, as `bucket/key`; nothing if the client names none, because that may be a secret in the
/// wrong place.
fn copy_source_of(request: &Request) -> String {
    let headers: Vec<(&str, &[u8])> = request.head.headers().collect();
    let query = Query::parse(request.head.query()).unwrap_or_default();
    let fields = Fields::new(&headers, &query);
    match CopySource::from_request(fields) {
        Ok(source) => format!("{}/{}", source.bucket.as_str(), source.key.as_str()),
        Err(_) => String::new(),
    }
}

/// Returns the answer to a request that cannot be recorded.
fn unrecorded(error: StoreFailure) -> S3Error {
    match error {
        StoreFailure::Full => ErrorCode::InsufficientStorage.into(),
        StoreFailure::Overloaded => ErrorCode::SlowDown.into(),
        StoreFailure::Failed(_) => S3Error::with_message(
            ErrorCode::ServiceUnavailable,
            "The audit trail cannot be written, so nothing is changed; ask the operator to look at the log.",
        ),
        StoreFailure::Closing => ErrorCode::ServiceUnavailable.into(),
    }
}

/// Returns `bucket/key`, the bucket alone, or nothing for the list of buckets.
fn resource_of(target: &Target) -> String {
    match target.recordable() {
        (bucket, "") => bucket.to_owned(),
        (bucket, key) => format!("{bucket}/{key}"),
    }
}
