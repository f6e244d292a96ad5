//! What the data plane leaves in the audit trail: requests that were refused for who sent them, and requests that failed
//! because stored data or the device did.
//!
//! Nothing waits for these records, and floods of them are cut short by their source. A request that was carried out
//! leaves none: that is what the request log is for.

use crate::errors::S3Error;
use crate::target::Target;
use cairn_identity::{Authentication, Principal};
use cairn_net::Request;
use cairn_observe::{AuditLog, AuditRecord, AuditResult, Source};
use std::net::IpAddr;
use std::sync::Arc;

/// What of a request a record needs, kept for as long as its response may still fail.
pub(crate) struct RequestTrail {
    log: Arc<AuditLog>,
    authentication: Option<Authentication>,
    operation: &'static str,
    resource: String,
    request_id: String,
    client: IpAddr,
}

impl RequestTrail {
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
            request_id: request.id.clone(),
            client: request.client,
        }
    }

    /// The request was refused for who sent it; of an account's credentials the record names the one. Of what the client claimed to be, only an access key that is known here is
    /// named: an unknown one may be a secret in the wrong place.
    pub(crate) fn refused(&self, error: &S3Error) {
        let claimed = error.elements().iter().find(|(name, _)| *name == "AWSAccessKeyId");
        let detail = match claimed {
            Some((_, key)) if error.code() == "SignatureDoesNotMatch" => {
                format!("{}: access key {key}", error.code())
            }
            _ => match error.denied_because() {
                Some(because) => format!("{}: {because}{}", error.code(), self.credential()),
                None => error.code().to_owned(),
            },
        };
        self.log.offer(Source::Client(self.client), self.record(AuditResult::Denied, detail));
    }

    /// Which credential of an account it was.
    fn credential(&self) -> String {
        match &self.authentication {
            Some(Authentication { principal: Principal::Account(_), access_key, .. }) => {
                format!("; access key {access_key}")
            }
            _ => String::new(),
        }
    }

    /// Stored data or the device failed the request.
    pub(crate) fn failed(&self, cause: &str) {
        let source = format!("{} {}", self.operation, self.resource);
        self.log.offer(Source::Finding(&source), self.record(AuditResult::Failed, cause.to_owned()));
    }

    fn record(&self, result: AuditResult, detail: String) -> AuditRecord {
        let principal = match &self.authentication {
            Some(Authentication { principal, .. }) => &principal.to_string(),
            None => AuditRecord::ANONYMOUS,
        };
        AuditRecord {
            resource: self.resource.clone(),
            source_ip: Some(self.client),
            request_id: self.request_id.clone(),
            detail,
            ..AuditRecord::new(principal, self.operation, result)
        }
    }
}

/// `bucket/key`, the bucket alone, or nothing for the list of buckets.
fn resource_of(target: &Target) -> String {
    match (target.bucket_text(), target.key_text()) {
        (bucket, "") => bucket.to_owned(),
        (bucket, key) => format!("{bucket}/{key}"),
    }
}
