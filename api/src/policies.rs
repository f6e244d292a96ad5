//! Policies, and what they allow an account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::optional::or_default;
use crate::reading::tolerant;
use crate::text::{BucketName, Description, Id, IpAddress, Name, ObjectKey, Time, text};

text! {
    /// The action of a request.
    Action("enum" = ["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ManageBucket"]);
    /// The effect of a statement: it allows or denies. A denial decides.
    Effect("enum" = ["allow", "deny"]);
    /// `bucket:<bucket>`, `bucket:<bucket>/<key>`, `bucket:<bucket>/<prefix>*`, or `bucket:<prefix>*` for all buckets whose
    /// names begin so, with their objects. A key or prefix of keys has at most 1024 bytes of UTF-8.
    PolicyResource("pattern" = r"^bucket:([a-z0-9.-]{0,63}\*|(?!xn--|sthree-|amzn-s3-demo-)(?![^/]*\.\.)(?![0-9]+\.[0-9]+\.[0-9]+\.[0-9]+(/|$))(?![^/]*(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)(/|$))[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^*]{1,1024}|/[^*]{0,1024}\*)?)$");
    /// An address, or a network with no bits set after its prefix, such as `10.0.0.0/8` or `2001:db8::/32`.
    Network("pattern" = r"^[0-9a-fA-F.:]{2,45}(/[0-9]{1,3})?$");
}

/// A statement of a policy: about each of its actions on each of its resources.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [
    {"properties": {"only_if_absent": {"enum": [false, null]}}},
    {"properties": {"effect": {"const": "allow"}, "actions": {"contains": {"const": "s3:PutObject"}}}},
]))]
pub struct Statement {
    pub effect: Effect,
    #[schemars(length(min = 1, max = 5), extend("uniqueItems" = true))]
    pub actions: Vec<Action>,
    #[schemars(length(min = 1, max = 100))]
    pub resources: Vec<PolicyResource>,
    /// Whether `s3:PutObject` is only allowed for keys that have no current object: such a write is refused with 412 otherwise,
    /// whatever the client sends.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub only_if_absent: bool,
    /// The networks of the clients that the statement applies to; all clients if it is absent or null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub source_ip: Option<Vec<Network>>,
}

/// A document of a policy: a new one, or one that replaces another.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyDocument {
    pub name: Name,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Description>")]
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
    #[serde(deserialize_with = "tolerant")]
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

/// A question about access: whether an account, the account of an access key, or anybody without a signature may do something.
/// An action on objects needs a key.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["account_id"], "properties": {"account_id": {"type": "string"}, "access_key": {"type": "null"}, "anonymous": {"type": "null"}}},
    {"required": ["access_key"], "properties": {"access_key": {"type": "string"}, "account_id": {"type": "null"}, "anonymous": {"type": "null"}}},
    {"required": ["anonymous"], "properties": {"anonymous": {"const": true}, "account_id": {"type": "null"}, "access_key": {"type": "null"}}},
], "anyOf" = [
    {"properties": {"action": {"enum": ["s3:ListBucket", "s3:ManageBucket"]}, "key": {"type": "null"}}},
    {"properties": {"action": {"enum": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]}, "key": {"type": "string"}}, "required": ["key"]},
]))]
pub struct CheckAccess {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key: Option<String>,
    /// Asks about anybody: whether a rule of public access allows it. The list of a bucket is that of all keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [true, null]))]
    pub anonymous: Option<bool>,
    pub action: Action,
    pub bucket: BucketName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ObjectKey>,
    /// The client's address, for statements with `source_ip`. Without it, denials of this kind apply and allowances do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ip: Option<IpAddress>,
}

text! {
    /// The reason for a decision about access.
    AccessReason("enum" = [
        "allowed", "denied", "no_statement", "root", "root_disabled", "account_disabled", "credential_disabled",
        "credential_expired", "public", "not_public"
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
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_if_absent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ip: Option<Vec<Network>>,
}

/// The decision on a request, and its reason.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AccessVerdict {
    pub allowed: bool,
    /// Whether it is only allowed for keys that have no current object.
    pub only_if_absent: bool,
    pub reason: AccessReason,
    /// Null for the root credential and for anybody, who have no policies.
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
