//! Refused S3 requests, and what would help.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policies::Effect;
use crate::text::{Id, IpAddress, Name, Time, text};

text! {
    /// The kind of rule that refused a request.
    RefusedBy("enum" = [
        "authentication", "policy", "quota", "object_lock", "cors_rules", "not_implemented", "request", "storage"
    ]);
    /// The decision of an account's policies now.
    DecisionNow("enum" = ["denied", "no_statement", "allowed", "allowed_if_absent", "account_deleted"]);
    /// The state of a credential that may not be used.
    CredentialState("enum" = ["account_disabled", "credential_disabled", "credential_expired"]);
}

/// The right that the account does not have.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct MissingRight {
    pub action: String,
    pub resource: String,
    pub denied_explicitly: bool,
}

/// The statement that decides now.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RefusingStatement {
    pub policy_id: Id,
    pub policy_name: Name,
    /// The index of the statement in its policy.
    pub statement: u64,
    pub effect: Effect,
    /// Null if it names one key, and keys are not logged.
    pub matching_resource: Option<String>,
}

/// One dimension of a quota.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct QuotaUse {
    pub limit: Option<u64>,
    pub used: u64,
}

/// The rule that decided. The members besides kind depend on it, and on what is known.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub struct RefusalRule {
    pub kind: RefusedBy,
    /// Whether the account still has the policies that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies_unchanged: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_now: Option<DecisionNow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies_attached: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-nullable" = true))]
    pub statement: Option<Option<RefusingStatement>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<QuotaUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<QuotaUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["GOVERNANCE", "COMPLIANCE", null], "x-nullable" = true))]
    pub mode: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-nullable" = true))]
    pub retain_until: Option<Option<Time>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal_hold: Option<bool>,
    /// The number of CORS rules of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<u64>,
    /// The part of the request that no CORS rule allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["bucket", "origin", "method", "headers", null], "x-nullable" = true))]
    pub not_allowed: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
}

/// A key of the configuration, its value, and the value that would help.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RefusingSetting {
    pub name: String,
    pub value: Option<String>,
    pub would_help: String,
}

/// A refused request. Unknown values are null.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RefusedRequest {
    pub time: Time,
    pub request_id: String,
    pub client: IpAddress,
    pub user_agent: Option<String>,
    pub principal: Option<String>,
    pub access_key: Option<String>,
    pub method: Option<String>,
    pub operation: Option<String>,
    pub bucket: Option<String>,
    pub key: Option<String>,
    #[schemars(range(min = 400, max = 599))]
    pub status: Option<u16>,
    pub code: String,
    pub message: Option<String>,
    pub refused_by: RefusedBy,
    pub right: Option<MissingRight>,
    pub decided_by: RefusalRule,
    pub setting: Option<RefusingSetting>,
    pub advice: Option<String>,
}

/// The last refused requests, the latest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RefusedRequestList {
    pub refused_requests: Vec<RefusedRequest>,
}
