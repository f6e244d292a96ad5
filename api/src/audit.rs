//! The audit trail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{Id, IpAddress, Time, text};

text! {
    /// The result of a request.
    AuditResult("enum" = ["allowed", "denied", "failed"]);
}

/// An event of the audit trail. Unknown values are null.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AuditEvent {
    pub id: Id,
    pub time: Time,
    pub principal: Option<String>,
    pub role: Option<String>,
    pub operation: Option<String>,
    pub resource: Option<String>,
    pub result: AuditResult,
    pub source_ip: Option<IpAddress>,
    pub request_id: Option<String>,
    pub detail: Option<String>,
}

/// A page, the latest event first. next_time and next_id are null on the last page.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AuditPage {
    pub events: Vec<AuditEvent>,
    pub next_time: Option<Time>,
    pub next_id: Option<Id>,
}
