//! Policies, and what they allow an account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::optional::present;
use crate::text::{BucketName, Description, Id, Name, ObjectKey, Time, text};

text! {
    /// What requests do.
    Action("enum" = ["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ManageBucket"]);
    /// Whether a statement allows or denies. A denial decides.
    Effect("enum" = ["allow", "deny"]);
    /// `bucket:<bucket>`, `bucket:<bucket>/<key>`, or `bucket:<bucket>/<prefix>*`. A key or prefix has at most 1024 bytes of UTF-8.
    PolicyResource("pattern" = r"^bucket:(?!xn--|sthree-|amzn-s3-demo-)(?![^/]*\.\.)(?![0-9]+\.[0-9]+\.[0-9]+\.[0-9]+(/|$))(?![^/]*(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)(/|$))[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^*]{1,1024}|/[^*]{0,1024}\*)?$");
}

/// A statement of a policy: about each of its actions on each of its resources.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    pub effect: Effect,
    #[schemars(length(min = 1, max = 5), extend("uniqueItems" = true))]
    pub actions: Vec<Action>,
    #[schemars(length(min = 1, max = 100))]
    pub resources: Vec<PolicyResource>,
}

/// A new policy.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePolicy {
    pub name: Name,
    #[serde(default)]
    pub description: Description,
    #[schemars(length(min = 1, max = 100))]
    pub statements: Vec<Statement>,
}

/// A policy.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    pub id: Id,
    pub name: Name,
    pub description: Description,
    #[schemars(length(min = 1, max = 100))]
    pub statements: Vec<Statement>,
    pub created_at: Time,
}

/// A policy with the accounts that it is attached to.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BoundPolicy {
    #[serde(flatten)]
    pub policy: Policy,
    /// Ids of accounts.
    pub attached_to: Vec<Id>,
}

/// All policies.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PolicyList {
    pub policies: Vec<BoundPolicy>,
}

/// The policies of an account.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PolicyStatements {
    pub policies: Vec<Policy>,
}

/// Whether an account, or the account of an access key, may do something. An action on objects needs a key.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["account_id"], "properties": {"access_key": false}},
    {"required": ["access_key"], "properties": {"account_id": false}},
], "anyOf" = [
    {"properties": {"action": {"enum": ["s3:ListBucket", "s3:ManageBucket"]}, "key": false}},
    {"properties": {"action": {"enum": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]}}, "required": ["key"]},
]))]
pub struct CheckAccess {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Id")]
    pub account_id: Option<Id>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub access_key: Option<String>,
    pub action: Action,
    pub bucket: BucketName,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ObjectKey")]
    pub key: Option<ObjectKey>,
}

text! {
    /// What decided about access.
    AccessReason("enum" = [
        "allowed", "denied", "no_statement", "root", "root_disabled", "account_disabled", "credential_disabled",
        "credential_expired"
    ]);
}

/// An account, and whether it may be used.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CheckedAccount {
    pub id: Id,
    pub name: Name,
    pub enabled: bool,
}

/// A statement that applies, with the resource that matches.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AppliedStatement {
    pub policy_id: Id,
    pub policy_name: Name,
    /// The index of the statement in its policy.
    pub statement: u64,
    pub effect: Effect,
    pub actions: Vec<Action>,
    pub resources: Vec<PolicyResource>,
    pub matching_resource: PolicyResource,
}

/// Whether something is allowed, and why.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AccessVerdict {
    pub allowed: bool,
    pub reason: AccessReason,
    /// Null for the root credential, which has no policies.
    pub account: Option<CheckedAccount>,
    /// The statement that decides, also if the account or the credential may not be used.
    pub decided_by: Option<AppliedStatement>,
    /// The other statements that apply, those that deny first.
    #[schemars(length(max = 100))]
    pub also_applying: Vec<AppliedStatement>,
    pub also_applying_omitted: u64,
    /// A statement that would allow it; null if one denies it or none is missing.
    pub would_allow: Option<Statement>,
}
