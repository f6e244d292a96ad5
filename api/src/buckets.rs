//! Buckets: list, settings, quota, object lock, CORS rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::optional::or_default;
use crate::text::{BucketName, Time, text};

/// Most bytes or objects that a quota can allow: 2^53 - 1, which every JSON parser reads exactly.
pub const QUOTA_LIMIT_MAX: u64 = 9_007_199_254_740_991;

/// The versioning state of a bucket. Unversioned: it never had versioning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum VersioningState {
    Unversioned,
    Enabled,
    Suspended,
}

/// The versioning state of a bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Versioning {
    pub versioning: VersioningState,
}

/// Another versioning state.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetVersioning {
    #[schemars(extend("enum" = ["Enabled", "Suspended"]))]
    pub versioning: VersioningState,
}

/// The mode of a quota's dimension: with a limit, or without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuotaMode {
    Limit,
    Unlimited,
}

/// The limit on bytes of current objects.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"properties": {"mode": {"const": "unlimited"}, "bytes": {"type": "null"}}},
    {"properties": {"mode": {"const": "limit"}, "bytes": {"type": "integer"}}, "required": ["bytes"]},
]))]
pub struct ByteQuota {
    pub mode: QuotaMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = QUOTA_LIMIT_MAX))]
    pub bytes: Option<u64>,
}

/// The limit on the number of current objects.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"properties": {"mode": {"const": "unlimited"}, "objects": {"type": "null"}}},
    {"properties": {"mode": {"const": "limit"}, "objects": {"type": "integer"}}, "required": ["objects"]},
]))]
pub struct ObjectQuota {
    pub mode: QuotaMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = QUOTA_LIMIT_MAX))]
    pub objects: Option<u64>,
}

/// Both dimensions of a quota.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    pub bytes: ByteQuota,
    pub objects: ObjectQuota,
}

/// Another quota. Both dimensions are replaced.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetQuota {
    pub quota: Quota,
}

/// Bytes and number of current objects, which the quota limits.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BucketUse {
    pub bytes: u64,
    pub objects: u64,
}

/// A bucket with its settings and its use.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    pub name: BucketName,
    pub created_at: Time,
    pub versioning: VersioningState,
    pub object_lock: bool,
    pub quota: Quota,
    pub usage: BucketUse,
}

/// All buckets.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BucketList {
    pub buckets: Vec<Bucket>,
}

/// A new bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBucket {
    pub name: BucketName,
    /// Object lock enables versioning, and cannot be set later.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub object_lock: bool,
}

/// Everything that a bucket contains. The versions include the current objects.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BucketContents {
    pub objects: u64,
    pub bytes: u64,
    pub versions: u64,
    pub version_bytes: u64,
    pub delete_markers: u64,
    pub multipart_uploads: u64,
    pub multipart_bytes: u64,
}

/// The strictness of a retention. GOVERNANCE can be bypassed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum RetentionMode {
    Governance,
    Compliance,
}

/// The retention of versions that are written without one of their own: days or years, not both.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["days"], "properties": {"days": {"type": "integer"}, "years": {"type": "null"}}},
    {"required": ["years"], "properties": {"years": {"type": "integer"}, "days": {"type": "null"}}},
]))]
pub struct DefaultRetention {
    pub mode: RetentionMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub days: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub years: Option<u32>,
}

/// The object lock of a bucket, and its default retention.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ObjectLock {
    pub object_lock: bool,
    pub default_retention: Option<DefaultRetention>,
}

/// Another default retention. Null removes it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["default_retention"]))]
pub struct SetObjectLock {
    #[serde(deserialize_with = "Option::deserialize")]
    pub default_retention: Option<DefaultRetention>,
}

text! {
    /// `*` for all, or an origin: scheme://host or scheme://host:port. An IPv6 address is in brackets.
    CorsOrigin("pattern" = r"^(\*|[!-)+-.0-~]+|[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._~-]+(:0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?)$");
    /// The methods that a rule can allow.
    CorsMethod("enum" = ["GET", "PUT", "HEAD", "POST", "DELETE"]);
    /// The name of a request header, with at most one *.
    RequestHeader("minLength" = 1, "pattern" = r"^[!#$%&'+.^_`|~0-9A-Za-z-]*\*?[!#$%&'+.^_`|~0-9A-Za-z-]*$");
    /// The name of a response header.
    ResponseHeader("pattern" = "^[!#$%&'+.^_`|~0-9A-Za-z-]+$");
}

/// A CORS rule: the requests that pages of other origins may send.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorsRule {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 255),
        regex(pattern = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]*$")
    )]
    pub id: Option<String>,
    #[schemars(length(min = 1))]
    pub allowed_origins: Vec<CorsOrigin>,
    #[schemars(length(min = 1))]
    pub allowed_methods: Vec<CorsMethod>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Vec<RequestHeader>>")]
    pub allowed_headers: Vec<RequestHeader>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Vec<ResponseHeader>>")]
    pub expose_headers: Vec<ResponseHeader>,
    /// The time for which browsers may keep the answer to a preflight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4_294_967_295_u32))]
    pub max_age_seconds: Option<u32>,
}

/// The CORS rules of a bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CorsRules {
    #[schemars(length(max = 100))]
    pub rules: Vec<CorsRule>,
}

/// At most 64 KiB.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetCorsRules {
    #[schemars(length(min = 1, max = 100))]
    pub rules: Vec<CorsRule>,
}
